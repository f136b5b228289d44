use std::io::{BufRead, BufReader};
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::names::{Moment, PciAddress};
use crate::workers::child::{UNREADABLE, serve};

/// A client whose child is a thread of this process.
fn served(perform: fn(&Request) -> Result<Answer, Refusal>) -> Client<'static> {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    std::thread::spawn(move || serve(theirs, perform).expect("served"));
    Client::over(ours)
}

/// Answers with what was to be written, as the driver that was read.
fn echo(request: &Request) -> Result<Answer, Refusal> {
    match request {
        Request::Write { value, .. } => Ok(Answer::Override(Some(value.clone()))),
        _ => Err(Refusal { tried: "that".to_owned(), errno: Some(22), said: "no".to_owned() }),
    }
}

fn write(value: &str) -> Request {
    Request::Write { path: String::new(), value: value.to_owned(), unless_used: Vec::new() }
}

fn written(value: &str) -> Reply {
    Ok(Answer::Override(Some(value.to_owned())))
}

/// So many replies, waited for.
fn replies<const N: usize>(client: &mut Client<'_>) -> [(u64, Reply); N] {
    let until = clock::now() + Duration::from_secs(20);
    let mut replies = Vec::new();
    while replies.len() < N {
        assert!(clock::now() < until, "{replies:?}");
        wait(&client.fd().into_iter().collect::<Vec<_>>(), until).expect("poll");
        replies.extend(client.replies());
    }
    replies.try_into().expect("no more")
}

#[test]
fn each_reply_is_that_of_its_request() {
    let mut client = served(echo);
    let texts: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let requests: Vec<Request> = texts.iter().map(|t| write(t)).collect();
    let replies = ask_each(vec![(&mut client, &requests)]).remove(0);
    assert_eq!(replies, texts.iter().map(|t| written(t)).collect::<Vec<_>>());
    assert_eq!(client.until(), None);
    let pci: PciAddress = "0000:01:00.0".parse().expect("address");
    match &client.ask_one(&Request::Override(pci)) {
        Err(Failure::Refused(refusal)) => assert_eq!(refusal.errno, Some(22)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_queued_is_sent_by_the_next_look_at_the_replies() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    theirs.set_nonblocking(true).expect("socket");
    let mut child = BufReader::new(theirs);
    let mut client = Client::over(ours);
    let number = client.queue(&write("a"));
    let mut line = String::new();
    assert_eq!(child.read_line(&mut line).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    assert!(client.until().is_some(), "who waits for the reply does not sleep before");
    assert!(client.replies().is_empty());
    child.read_line(&mut line).expect("request");
    assert!(line.contains(&format!("\"number\":{number}")), "{line}");
}

#[test]
fn several_children_are_waited_for_together() {
    let (mut one, mut other) = (served(echo), served(echo));
    let replies =
        ask_each(vec![(&mut one, &[write("a"), write("b")]), (&mut other, &[write("c")])]);
    assert_eq!(replies, [vec![written("a"), written("b")], vec![written("c")]]);
}

#[test]
fn one_that_is_silent_is_dropped_and_no_late_answer_is_taken_for_anothers() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let mut client = Client::over(ours);
    let first = client.ask(&write("first"));
    assert!(client.replies().is_empty() && client.open.contains_key(&first));
    client.open.insert(first, clock::now() - SILENCE);
    assert_eq!(client.replies(), [(first, Err(Failure::SILENT))]);
    assert!(client.fd().is_none() && !client.open.contains_key(&first));
    let mut line = String::new();
    let mut child = BufReader::new(theirs);
    child.read_line(&mut line).expect("request");
    assert_eq!(child.read_line(&mut line).expect("end"), 0, "its parent is gone");

    // One that nobody dropped answers what was given up, and then what was not.
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    client.link = Some(Link { child: None, stream: ours, unread: Vec::new() });
    let second = client.ask(&write("second"));
    assert_ne!(first, second);
    let mut child = Link { child: None, stream: theirs, unread: Vec::new() };
    for (number, text) in [(first, "first"), (second, "second")] {
        let what: Result<Answer, Refusal> = Ok(Answer::Override(Some(text.to_owned())));
        child
            .write(&serde_json::to_string(&Numbered { number, what }).expect("JSON"))
            .expect("way");
    }
    assert_eq!(replies(&mut client), [(second, written("second"))]);
}

#[test]
fn one_question_is_waited_for_until_its_deadline() {
    let mut client = served(echo).patient();
    let until = clock::now() + Duration::from_secs(20);
    assert_eq!(client.ask_until(&write("a"), until), written("a"));
    client.disconnect();
    assert!(client.fd().is_none(), "nobody asks it any more");
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let mut client = Client::over(ours).patient();
    let began = clock::now();
    assert_eq!(
        client.ask_until(&write("b"), began + Duration::from_millis(50)),
        Err(Failure::SILENT)
    );
    assert!(clock::now() >= began + Duration::from_millis(50) && client.fd().is_none());
    drop(theirs);
}

#[test]
fn a_patient_one_keeps_a_child_that_is_silent() {
    let (ours, _theirs) = UnixStream::pair().expect("sockets");
    let mut client = Client::over(ours).patient();
    let number = client.ask(&write("a"));
    client.open.insert(number, clock::now() - SILENCE);
    assert!(client.replies().is_empty() && client.fd().is_some());
    assert_eq!(client.until(), None);
}

#[test]
fn of_a_child_that_goes_away_every_open_question_is_told() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let mut client = Client::over(ours);
    let numbers = [client.ask(&write("a")), client.ask(&write("b"))];
    drop(theirs);
    let gone = || Err(Failure::NoChild("the child was killed".to_owned()));
    assert_eq!(client.replies(), numbers.map(|number| (number, gone())));
    assert!(client.fd().is_none());
}

#[test]
fn a_line_that_is_no_answer_ends_it() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let mut client = Client::over(ours);
    client.ask(&write("a"));
    let mut child = Link { child: None, stream: theirs, unread: Vec::new() };
    child.write("{\"number\":1,\"what\":\"well\"}").expect("way");
    match &replies(&mut client) {
        [(1, Err(Failure::NoChild(why)))] => assert!(why.contains("is invalid"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(client.fd().is_none());
}

#[test]
fn the_child_refuses_a_line_that_is_no_request() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    std::thread::spawn(move || serve(theirs, echo).expect("served"));
    let mut parent = Link { child: None, stream: ours, unread: Vec::new() };
    let mut lines = Vec::new();
    for line in ["{\"number\":3,\"what\":{\"override\":\"../../etc\"}}", "x"] {
        parent.write(line).expect("way");
        while lines.is_empty() {
            wait(&[parent.stream.as_fd()], clock::now() + Duration::from_secs(20)).expect("poll");
            lines = parent.read().expect("lines").0;
        }
        let answer: Numbered<Result<Answer, Refusal>> =
            serde_json::from_str(&lines.remove(0)).expect("answer");
        let refusal = answer.what.expect_err("refused");
        assert_eq!(refusal.tried, UNREADABLE);
        assert_eq!(answer.number, if line == "x" { 0 } else { 3 });
    }
}

#[test]
fn the_child_works_on_eight_requests_at_once_and_goes_on_while_one_hangs() {
    static GATE: Mutex<Option<mpsc::Sender<mpsc::Sender<()>>>> = Mutex::new(None);
    fn slow(request: &Request) -> Result<Answer, Refusal> {
        if *request == write("hang") {
            let (go, wait) = mpsc::channel();
            let gate = GATE.lock().expect("gate").clone();
            gate.expect("sender").send(go).expect("test");
            wait.recv().expect("go");
        }
        echo(request)
    }
    let (gate, hanging) = mpsc::channel();
    *GATE.lock().expect("gate") = Some(gate);
    let mut client = served(slow).patient();
    for _ in 0..7 {
        client.ask(&write("hang"));
    }
    let mut go: Vec<_> = (0..7).map(|_| hanging.recv().expect("hangs")).collect();
    let number = client.ask(&write("a"));
    assert_eq!(replies(&mut client), [(number, written("a"))]);
    // The eighth takes the last thread: the next question waits for one that ends.
    let eighth = client.ask(&write("hang"));
    go.push(hanging.recv().expect("hangs"));
    let last = client.ask(&write("b"));
    assert!(client.open.contains_key(&last) && client.open.contains_key(&eighth));
    go.pop().expect("eighth").send(()).expect("go");
    assert_eq!(replies(&mut client), [(eighth, written("hang")), (last, written("b"))]);
}

#[test]
fn a_copied_tree_is_looked_up_at_once() {
    let tree = tempfile::tempdir().expect("temporary directory");
    let root = Root::copy_at(tree.path()).expect("root");
    let mut client = Client::new(&root);
    let pci: PciAddress = "0000:01:00.0".parse().expect("address");
    let number = client.ask(&Request::Administered(Vec::new()));
    assert_eq!((client.until(), client.fd().is_none()), (Some(Moment::START), true));
    assert_eq!(client.replies(), [(number, Ok(Answer::Administered(Vec::new())))]);
    match &client.ask_one(&Request::Override(pci)) {
        Err(Failure::Refused(refusal)) => assert_eq!(refusal.errno, Some(2)),
        other => panic!("{other:?}"),
    }
}
