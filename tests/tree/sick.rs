//! A live host whose adapter does not answer: a file of its sysfs, in a mount namespace of the
//! test, is one of FUSE, whose reader sleeps uninterruptibly (`request_wait_answer()`,
//! fs/fuse/dev.c) until it is answered.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use expect_test::expect;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sched::{CloneFlags, unshare};

use crate::host::{Host, PF};

const STATE: &str = "infiniband/mlx5_0/ports/1/state";
const CARRIER: &str = "net/ib0/carrier";
const NOBODY: u32 = 65534;

/// No look takes so long, on however busy a machine: what has not ended by then waits for the
/// adapter, which answers then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the program is for whoever runs it in the namespace.
const PROGRAM: &str = "/run/program";

/// When a read of the file is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    After(Duration),
    /// Once the test has ended, or its patience has.
    Never,
}

/// How the file is read.
struct Reads {
    answers: Answers,
    /// So many reads there were.
    begun: usize,
    /// The test has waited too long.
    is_late: bool,
}

/// The file that may not be answered.
struct Hang {
    path: PathBuf,
    reads: Arc<(Mutex<Reads>, Condvar)>,
    server: Option<thread::JoinHandle<()>>,
}

impl Hang {
    /// Over the file at `path`, which says `text` where it is answered.
    fn over(path: &Path, text: &'static str) -> Self {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").expect("fuse");
        let options =
            format!("fd={},rootmode=100444,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        mount(Some("hang"), path, Some("fuse"), MsFlags::empty(), Some(options.as_str()))
            .expect("a file of FUSE");
        let reads = Reads { answers: Answers::Never, begun: 0, is_late: false };
        let reads = Arc::new((Mutex::new(reads), Condvar::new()));
        let theirs = Arc::clone(&reads);
        let server = thread::spawn(move || serve(&device, text, &theirs));
        Self { path: path.to_owned(), reads, server: Some(server) }
    }

    fn state(&self) -> MutexGuard<'_, Reads> {
        self.reads.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on reads are answered so, also those that wait; the count begins anew.
    fn answer(&self, answers: Answers) {
        let mut state = self.state();
        (state.answers, state.begun) = (answers, 0);
        self.reads.1.notify_all();
    }
}

impl Drop for Hang {
    fn drop(&mut self) {
        self.answer(Answers::After(Duration::ZERO));
        // It ends the server too: ENODEV.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        drop(self.server.take().map(thread::JoinHandle::join));
    }
}

/// A reply to the request `unique` (`struct fuse_out_header`).
fn reply(device: &File, unique: u64, errno: i32, body: &[u8]) {
    let length = u32::try_from(16 + body.len()).expect("length");
    let mut message = length.to_le_bytes().to_vec();
    message.extend((-errno).to_le_bytes());
    message.extend(unique.to_le_bytes());
    message.extend(body);
    let mut device = device;
    // Who asked may have been killed.
    drop(device.write(&message));
}

/// Answers the kernel (include/uapi/linux/fuse.h) for one regular file.
fn serve(device: &File, text: &'static str, reads: &Arc<(Mutex<Reads>, Condvar)>) {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut buffer = vec![0; 1 << 17];
    loop {
        let mut polled = [PollFd::new(device.as_fd(), PollFlags::POLLIN)];
        let polled = poll(&mut polled, 60_000_u16);
        if polled == Err(Errno::EINTR) {
            continue;
        }
        polled.expect("poll");
        let read = (&mut &*device).read(&mut buffer);
        let errno = read.as_ref().err().and_then(std::io::Error::raw_os_error);
        match errno.map(Errno::from_raw) {
            // The file is mounted no more.
            Some(Errno::ENODEV) => return,
            // One that was interrupted before it was read.
            Some(Errno::ENOENT) => continue,
            _ => {}
        }
        let length = read.expect("a request");
        let word =
            |at: usize| u32::from_le_bytes(buffer[at..at + 4].try_into().expect("four bytes"));
        assert!(length >= 40, "a header of FUSE");
        let unique = u64::from_le_bytes(buffer[8..16].try_into().expect("eight bytes"));
        let body: Vec<u8> = match word(4) {
            // FUSE_INIT
            26 => words(&[7, 31, 65_536, 0, 16 | 12 << 16, 65_536, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            // FUSE_GETATTR: a regular file of one link and 4 KiB
            3 => {
                let times: [u32; 16] = [1, 0, 0, 0, 1, 0, 4096, 0, 8, 0, 0, 0, 0, 0, 0, 0];
                let rest: [u32; 10] = [0, 0, 0, 0o100_444, 1, 0, 0, 0, 4096, 0];
                words(&times.into_iter().chain(rest).collect::<Vec<_>>())
            }
            // FUSE_OPEN: not by the page cache
            14 => words(&[1, 0, 1, 0]),
            // FUSE_READ
            15 => {
                let at = u64::from_le_bytes(buffer[48..56].try_into().expect("eight bytes"));
                let (device, reads) = (device.try_clone().expect("descriptor"), Arc::clone(reads));
                thread::spawn(move || answer_read(&device, unique, at, text, &reads));
                continue;
            }
            // FUSE_FORGET, FUSE_INTERRUPT, FUSE_BATCH_FORGET: no answer
            2 | 36 | 42 => continue,
            // FUSE_RELEASE, FUSE_FLUSH
            18 | 25 => Vec::new(),
            _ => {
                reply(device, unique, Errno::ENOSYS as i32, &[]);
                continue;
            }
        };
        reply(device, unique, 0, &body);
    }
}

fn answer_read(
    device: &File,
    unique: u64,
    at: u64,
    text: &str,
    (reads, changed): &(Mutex<Reads>, Condvar),
) {
    let began = Instant::now();
    let mut state = reads.lock().unwrap_or_else(PoisonError::into_inner);
    state.begun += usize::from(at == 0);
    loop {
        let due = match state.answers {
            _ if at > 0 => Duration::ZERO,
            Answers::After(due) => due,
            Answers::Never => PATIENCE,
        };
        let Some(left) = due.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
            state.is_late |= state.answers == Answers::Never && at == 0;
            break;
        };
        let waited = changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        state = waited.0;
    }
    drop(state);
    let text = if at == 0 { text } else { "" };
    reply(device, unique, 0, text.as_bytes());
}

/// A healthy host of which a file may hang.
struct Sick {
    hang: Hang,
    _host: Host,
}

impl Sick {
    /// `run` in a mount namespace of its own where the file `of` the adapter is one that says
    /// `text`; skipped where there cannot be one.
    fn test(of: &str, text: &'static str, run: fn(&Self)) {
        /// One at a time: a look as another user finds the processes of every test.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let of = of.to_owned();
        let test = move || {
            if let Err(e) = unshare(CloneFlags::CLONE_NEWNS) {
                println!("skipped: a mount namespace cannot be made: {e}");
                return;
            }
            if !Path::new("/dev/fuse").exists() {
                println!("skipped: /dev/fuse does not exist");
                return;
            }
            let none: Option<&str> = None;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(none, "/", none, private, none).expect("a private tree");
            let host = Host::healthy();
            host.file(&format!("sys/bus/pci/devices/{PF}/{CARRIER}"), "1\n");
            let bind = |from: &Path, to: &str| {
                mount(Some(from), to, none, MsFlags::MS_BIND, none).expect("bound");
            };
            bind(&host.path("sys"), "/sys");
            mount(Some("run"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=755"))
                .expect("tmpfs");
            fs::create_dir("/run/udev").expect("directory");
            fs::write("/run/udev/control", "").expect("file");
            fs::write(PROGRAM, "").expect("file");
            bind(Path::new(env!("CARGO_BIN_EXE_ibprov")), PROGRAM);
            let path = fs::canonicalize(format!("/sys/bus/pci/devices/{PF}/{of}")).expect("file");
            run(&Self { hang: Hang::over(&path, text), _host: host });
        };
        thread::Builder::new().spawn(test).expect("thread").join().expect("the test");
    }

    /// What `ibprov` with `arguments` says, read through pipes to the ends of both streams.
    fn look(&self, user: u32, arguments: &str) -> Output {
        let out = self.command(user, arguments).output().expect("ibprov");
        assert!(!self.hang.state().is_late, "ibprov {arguments} waits for the adapter: {out:?}");
        out
    }

    fn command(&self, user: u32, arguments: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments.split(' ')).uid(user).gid(user).stdin(Stdio::null());
        command
    }
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Ten looks at what does not answer, and what another one says.
fn ten_looks(sick: &Sick, user: u32) -> String {
    sick.hang.answer(Answers::Never);
    for _ in 0..10 {
        sick.look(user, "health --for npd");
    }
    let status = said(&sick.look(user, "status"));
    assert_eq!(sick.hang.state().begun, 1, "as user {user}, each wait in a process: {status}");
    // It is the one that is named, and ends with the answer.
    let (_, named) = status.split_once("(process ").expect("a process");
    let process = Path::new("/proc").join(named.split(')').next().unwrap_or_default());
    assert!(process.exists(), "{status}");
    sick.hang.answer(Answers::After(Duration::ZERO));
    let began = Instant::now();
    while process.exists() {
        assert!(began.elapsed() < PATIENCE, "{} is still there", process.display());
        thread::yield_now();
    }
    status
}

#[test]
fn looks_at_an_adapter_that_does_not_answer_end_and_leave_one_process() {
    Sick::test(STATE, "4: ACTIVE\n", |sick| {
        for user in [0, NOBODY] {
            let status = ten_looks(sick, user);
            assert!(status.contains(PF) && status.contains("has not answered since"), "{status}");
        }
    });
}

#[test]
fn looks_that_wait_for_the_rtnl_lock_leave_one_process() {
    Sick::test(CARRIER, "1\n", |sick| {
        for user in [0, NOBODY] {
            let status = ten_looks(sick, user);
            assert!(status.contains("the kernel has not answered since"), "{status}");
        }
    });
}

#[test]
fn of_two_looks_at_once_at_a_slow_adapter_both_are_answered() {
    Sick::test(STATE, "4: ACTIVE\n", |sick| {
        sick.hang.answer(Answers::After(Duration::ZERO));
        let at_once = said(&sick.look(0, "status"));
        assert!(at_once.contains("mlx5_0") && !at_once.contains("answer"), "{at_once}");
        for user in [0, NOBODY] {
            let at_once = said(&sick.look(user, "status"));
            sick.hang.answer(Answers::After(Duration::from_secs(1)));
            let looks = [0, 1].map(|_| {
                let mut command = sick.command(user, "status");
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ibprov")
            });
            for look in looks {
                assert_eq!(said(&look.wait_with_output().expect("ibprov")), at_once);
            }
            assert_eq!(sick.hang.state().begun, 2);
            sick.hang.answer(Answers::After(Duration::ZERO));
        }
    });
}

/// What `script` says on the live host of `tree`, as process 1 of a process namespace, and its exit
/// code; `$I` is the program. `None` where there can be no such namespace.
fn on_live_host(host: &Host, script: &str) -> Option<(String, Option<i32>)> {
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        let args = ["--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-euc", script];
        command.args(args).stdin(Stdio::null());
        command
    };
    if !unshared("true").stderr(Stdio::null()).status().expect("unshare").success() {
        println!("skipped: a process namespace cannot be made");
        return None;
    }
    let tree = host.path("").display().to_string();
    let script = format!(
        "mount --rbind \"$TREE/sys\" /sys; mount -t tmpfs none /run; mkdir -p /run/udev
        I='{} --config {tree}/etc/ibprov/ibprov.toml'
        {script}",
        env!("CARGO_BIN_EXE_ibprov")
    );
    let out = unshared(&script).env("TREE", tree).output().expect("unshare");
    Some((said(&out) + &String::from_utf8_lossy(&out.stderr), out.status.code()))
}

#[test]
fn a_run_that_systemd_does_not_answer_leaves_its_outcome_before_its_alarm() {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", "[network]\ntimeout = \"3s\"\n");
    host.file("systemctl", "#!/bin/sh\nexec sleep 600\n");
    // A run of a unit: process 1 starts it.
    let run = on_live_host(
        &host,
        "chmod +x \"$TREE/systemctl\"; mount --bind \"$TREE/systemctl\" \"$(command -v systemctl)\"
        code=0; INVOCATION_ID=1 $I iface ib0 || code=$?
        cat /run/ibprov/ports/*.json >\"$TREE/outcome\"; exit $code",
    );
    let Some((said, code)) = run else { return };
    assert_eq!(code, Some(3), "{said}");
    let outcome = fs::read_to_string(host.path("outcome")).expect("an outcome");
    let outcome: serde_json::Value = serde_json::from_str(&outcome).expect("JSON");
    assert_eq!(outcome["bring_up"], "failed", "{outcome:#}");
    assert!(said.contains("systemctl") && said.contains("has not answered"), "{said}");
}

#[test]
fn a_lock_is_held_although_there_is_no_room_to_write_who_holds_it() {
    let host = Host::healthy();
    let pf = format!("sys/bus/pci/devices/{PF}");
    host.file(&format!("{pf}/sriov_totalvfs"), "16\n");
    host.file(&format!("{pf}/sriov_numvfs"), "0\n");
    host.file(&format!("{pf}/sriov_drivers_autoprobe"), "1\n");
    let guids = "guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"";
    let plan = format!("[host]\nnumber = 7\n[[pf]]\npci = \"{PF}\"\nvfs = 2\n{guids}\n");
    host.file("etc/ibprov/ibprov.toml", &plan);
    let run = on_live_host(
        &host,
        "mount -t tmpfs -o size=64k none /run; mkdir -p /run/udev
        cat /dev/zero >/run/fill 2>/dev/null || :
        $I apply --yes --timeout-msec 1000 || :; ls /run/ibprov/lock",
    );
    let Some((said, _)) = run else { return };
    assert!(said.contains("ENOSPC") && said.contains(&format!("pf-{PF}")), "{said}");
    assert!(!said.contains("lock/"), "{said}");
}

/// That the first run of ibprov.service waits is no fault of the node, as long as it does: not past
/// its deadline, not in a later run or one by hand, and not for what is lost for good.
#[test]
fn what_the_first_run_of_a_boot_still_waits_for_is_unknown_and_nothing_else_is() {
    let host = crate::active::rails(&[crate::active::LIT]);
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.file("etc/ibprov/ibprov.toml", "");
    host.file("lost.toml", "[[port]]\npci = \"0000:99:00.0\"\n");
    let script = "
        mkdir /run/ibprov; mount --rbind $TREE/run/udev /run/udev; sleep 600 & now=$!; sleep 0 & over=$!; wait $over
        this=$(cat /proc/sys/kernel/random/boot_id)
        look() { # CASE BOOT PID DEADLINE
            echo \"$2 $3 $(($4 - 150000000)) $4\" >/run/ibprov/boot.first
            for asker in npd nagios nhc slurm; do
                code=0; line=$($I health --for $asker) || code=$?
                echo \"$1: $code ${line%%;*}\"
            done
        }
        look waits $this $now 9000000000000000
        COLUMNS=200 $I status | sed -n 's/^ *//; 1,3p'
        code=0; $I check >/dev/null 2>&1 || code=$?; echo check: $code
        look late $this $now 150000001
        look later $this $over 9000000000000000
        look before 0a0a0a0a $now 9000000000000000
        rm /run/ibprov/boot.first; code=0; $I health --for npd >/dev/null || code=$?; echo none: $code
        I=\"${I% --config*} --config $TREE/lost.toml\"
        look lost $this $now 9000000000000000
        kill $now";
    let Some((said, _)) = on_live_host(&host, script) else { return };
    expect![[r#"
        waits: 2 UNKNOWN: boot-in-progress
        waits: 3 UNKNOWN: boot-in-progress
        waits: 2 UNKNOWN: boot-in-progress
        waits: 2 UNKNOWN: boot-in-progress
        UNKNOWN: 1 of 2 expected ports active
        warning: the host: boot not finished, waits for 0000:5e:00.0 (RDMA device) and mlx5_0/1 (not named), deadline 2min 30s after its start
        run: systemctl status ibprov
        check: 2
        late: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        late: 2 NOT READY: port-not-ready mlx5_0/1 and 1 more
        late: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        late: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        later: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        later: 2 NOT READY: port-not-ready mlx5_0/1 and 1 more
        later: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        later: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        before: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        before: 2 NOT READY: port-not-ready mlx5_0/1 and 1 more
        before: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        before: 1 NOT READY: port-not-ready mlx5_0/1 and 1 more
        none: 1
        lost: 1 NOT READY: port-absent 0000:99:00.0
        lost: 2 NOT READY: port-absent 0000:99:00.0
        lost: 1 NOT READY: port-absent 0000:99:00.0
        lost: 1 NOT READY: port-absent 0000:99:00.0
    "#]].assert_eq(&said);
}
