//! The arrows of the house: which room of `src/` may import which stands in the
//! table "Rooms" of ARCHITECTURE.md and nowhere else; no file is in a circle of
//! imports, but for a module and the files in it. What is compiled for tests only does not count.
//!
//! The sources are read as rustc reads them (syn): `use` declarations, paths in
//! the code, and paths in the arguments of macros. A name that a module re-exports
//! counts as an import of the file that defines it; a module that is imported
//! counts by what is taken from it.

#![allow(clippy::disallowed_methods, reason = "tests read the sources")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic in its helpers too"
)]

#[path = "bed/scenario.rs"]
#[allow(dead_code, reason = "of a scenario, only its bed is asked for here")]
mod scenario;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// Circles that are meant, each with its reason: the files below `src/`, sorted.
const MEANT: [(&[&str], &str); 0] = [];

/// A path from the root of the crate, without `crate`.
type FromRoot = Vec<String>;

/// One import: by which file, in which line, of what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    by: String,
    line: usize,
    path: FromRoot,
}

/// The sources that are part of the program.
struct Sources {
    /// By module path: the file below `src/`.
    files: BTreeMap<FromRoot, String>,
    /// What a module calls by another name: module path and name, and what it is.
    renamed: BTreeMap<(FromRoot, String), FromRoot>,
    imports: Vec<Import>,
}

/// Read once for all tests.
static SOURCES: LazyLock<Sources> = LazyLock::new(Sources::read);

#[test]
fn every_import_goes_the_way_of_the_table() {
    let sources = &*SOURCES;
    let table = table();
    let rooms: BTreeSet<String> = sources.files.values().map(|f| room(f)).collect();
    let listed: BTreeSet<String> = table.keys().cloned().collect();
    assert_eq!(rooms, listed, "ARCHITECTURE.md, \"Rooms\", has a row for each room");
    let mut wrong = Vec::new();
    for import in &sources.imports {
        let (from, to) = (room(&import.by), room(&sources.file_of(&import.path)));
        if from != to && !table.get(&from).is_some_and(|may| may.contains(&to)) {
            wrong.push(format!("src/{}:{}: {from} imports {to}", import.by, import.line));
        }
    }
    assert!(wrong.is_empty(), "against the table \"Rooms\":\n{}", wrong.join("\n"));
    assert!(sources.imports.len() > 500, "{} imports were read", sources.imports.len());
}

/// Each room stands above all that it may import, so the table has no circle.
#[test]
fn the_table_has_no_circle() {
    let table = table();
    let edges = table.iter().flat_map(|(from, may)| may.iter().map(move |to| (from, to)));
    let circles = circles(&edges.map(|(from, to)| (from.clone(), to.clone())).collect());
    assert!(circles.is_empty(), "rooms in a circle: {circles:?}");
}

#[test]
fn no_file_is_in_a_circle() {
    let sources = &*SOURCES;
    let mut lines: BTreeMap<(String, String), usize> = BTreeMap::new();
    for import in &sources.imports {
        let to = sources.file_of(&import.path);
        let is_module = sources.files.contains_key(&import.path);
        if to != import.by && !is_module && !contains(&to, &import.by) {
            lines.entry((import.by.clone(), to)).or_insert(import.line);
        }
    }
    let mut said = Vec::new();
    for circle in circles(&lines.keys().cloned().collect()) {
        if MEANT.iter().any(|(files, _)| *files == circle.as_slice()) {
            continue;
        }
        said.push(format!("{} files:", circle.len()));
        for ((from, to), line) in &lines {
            if circle.contains(from) && circle.contains(to) {
                said.push(format!("    src/{from}:{line} imports src/{to}"));
            }
        }
    }
    assert!(said.is_empty(), "circles of imports:\n{}", said.join("\n"));
}

/// Prints how large the rooms are: `cargo test --test house -- --nocapture table_of_rooms`.
/// It limits nothing.
#[test]
fn table_of_rooms() {
    let mut rooms: BTreeMap<String, Size> = BTreeMap::new();
    let program: BTreeSet<String> = SOURCES.files.values().cloned().collect();
    let src = project().join("src");
    let mut open = vec![src.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let file = path.strip_prefix(&src).expect("below src").display().to_string();
                let text = fs::read_to_string(&path).expect("a source");
                let size = Size::of(&text, program.contains(&file));
                rooms.entry(room(&file)).or_default().add(size);
            }
        }
    }
    let mut all = Size::default();
    println!("{:<10} {:>6} {:>8} {:>8} {:>8}", "room", "files", "code", "comments", "tests");
    let print = |name: &str, Size { files, code, comments, tests }: Size| {
        println!("{name:<10} {files:>6} {code:>8} {comments:>8} {tests:>8}");
    };
    for (name, size) in &rooms {
        print(name, *size);
        all.add(*size);
    }
    print("all", all);
    assert_eq!(rooms.into_keys().collect::<Vec<_>>(), table().into_keys().collect::<Vec<_>>());
}

/// Lines that are not empty.
#[derive(Default, Clone, Copy)]
struct Size {
    files: usize,
    code: usize,
    comments: usize,
    tests: usize,
}

impl Size {
    /// Of a file that is part of the program, or of one that is compiled for tests only.
    fn of(text: &str, in_program: bool) -> Self {
        let parsed = syn::parse_file(text).expect("rust");
        let tests = parsed.items.iter().filter(|item| is_test(attributes(item)));
        let tests = tests.map(Spanned::span).map(|s| s.start().line..=s.end().line);
        let tests: Vec<_> = tests.collect();
        let mut size = Self { files: 1, ..Self::default() };
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if !in_program || tests.iter().any(|test| test.contains(&(n + 1))) {
                size.tests += 1;
            } else if line.trim_start().starts_with("//") {
                size.comments += 1;
            } else {
                size.code += 1;
            }
        }
        size
    }

    fn add(&mut self, more: Self) {
        self.files += more.files;
        self.code += more.code;
        self.comments += more.comments;
        self.tests += more.tests;
    }
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

/// The rows of the table: a room, and what it may import.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(project().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let rows = text.lines().skip_while(|l| !l.starts_with("| room | may import |")).skip(2);
    let rows = rows.take_while(|l| l.starts_with('|'));
    let words = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut table = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let &[_, rooms, may, ..] = cells.as_slice() else { panic!("no row: {row}") };
        for room in words(rooms) {
            table.insert(room, words(may).into_iter().collect());
        }
    }
    table
}

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The room of a file: the folder below `src/`, or the file itself.
fn room(file: &str) -> String {
    file.split(['/', '.']).next().unwrap_or_default().to_owned()
}

/// The module of file `outer` has the file `inner` in it, which may use what the whole
/// module has.
fn contains(outer: &str, inner: &str) -> bool {
    let folder = outer.strip_suffix("mod.rs").map_or_else(
        || outer.strip_suffix(".rs").map(|stem| format!("{stem}/")),
        |folder| Some(folder.to_owned()),
    );
    folder.is_some_and(|folder| inner.starts_with(&folder))
}

/// The groups of more than one that reach each other, each sorted.
fn circles(edges: &BTreeSet<(String, String)>) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|node| (*node, reach(&next, node))).collect();
    let group = |node: &str| -> Vec<String> {
        let own = reached.get(node).into_iter().flatten();
        let both = own.filter(|other| reached.get(*other).is_some_and(|r| r.contains(node)));
        both.map(|other| (*other).to_owned()).collect()
    };
    let groups: BTreeSet<Vec<String>> = reached.keys().map(|node| group(node)).collect();
    groups.into_iter().filter(|group| group.len() > 1).collect()
}

/// All that `from` reaches, over one arrow or more.
fn reach<'a>(next: &BTreeMap<&'a str, Vec<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        let more = next.get(at).into_iter().flatten();
        open.extend(more.copied().filter(|to| seen.insert(*to)));
    }
    seen
}

impl Sources {
    fn read() -> Self {
        let mut sources =
            Self { files: BTreeMap::new(), renamed: BTreeMap::new(), imports: Vec::new() };
        for root in ["lib.rs", "main.rs"] {
            sources.module(Path::new(root), &[]);
        }
        sources
    }

    /// Reads a file and those of its modules that are compiled for the program.
    fn module(&mut self, file: &Path, module: &[String]) {
        let text = fs::read_to_string(project().join("src").join(file)).expect("a source");
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let name = file.display().to_string();
        if name != "main.rs" {
            self.files.insert(module.to_vec(), name.clone());
        } else {
            self.files.insert(vec!["main".to_owned()], name.clone());
        }
        let declared = parsed.items.iter().filter_map(|item| match item {
            Item::Mod(declared) if !is_test(&declared.attrs) => Some(declared.ident.to_string()),
            _ => None,
        });
        let within = |name: &String| [module, std::slice::from_ref(name)].concat();
        let known = declared.map(|name| (name.clone(), within(&name))).collect();
        let mut reader = Reader { file: name, module: module.to_vec(), known, ..Reader::default() };
        // First what its names mean, then what is done with them.
        for item in &parsed.items {
            if let Item::Use(used) = item
                && !is_test(&used.attrs)
            {
                reader.names(&used.tree, &[]);
            }
        }
        reader.items(&parsed.items);
        self.renamed.extend(reader.renamed);
        self.imports.extend(reader.imports);
        for item in &parsed.items {
            let Item::Mod(declared) = item else { continue };
            if declared.content.is_some() || is_test(&declared.attrs) {
                continue;
            }
            let child = declared.ident.to_string();
            let folder = match file.file_name().and_then(|f| f.to_str()) {
                Some("lib.rs" | "main.rs" | "mod.rs") => file.with_file_name(""),
                _ => file.with_extension(""),
            };
            let inner = [module, std::slice::from_ref(&child)].concat();
            let beside = folder.join(format!("{child}.rs"));
            let below = folder.join(&child).join("mod.rs");
            let there = if project().join("src").join(&beside).exists() { beside } else { below };
            self.module(&there, &inner);
        }
    }

    /// The file that defines what a path from the root means.
    fn file_of(&self, path: &[String]) -> String {
        self.defined(path, 0)
    }

    fn defined(&self, path: &[String], depth: usize) -> String {
        let longest = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]));
        let (module, rest) = path.split_at(longest.unwrap_or_default());
        if let Some(name) = rest.first()
            && depth < 20
            && let Some(target) = self.renamed.get(&(module.to_vec(), name.clone()))
        {
            let whole = [target.as_slice(), &rest[1..]].concat();
            return self.defined(&whole, depth + 1);
        }
        self.files.get(module).cloned().unwrap_or_default()
    }
}

/// Reads one file.
#[derive(Default)]
struct Reader {
    file: String,
    module: FromRoot,
    imports: Vec<Import>,
    renamed: Vec<((FromRoot, String), FromRoot)>,
    /// What a name means here: the modules declared here, and what is imported.
    known: BTreeMap<String, FromRoot>,
}

impl Reader {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.visit_item(item);
        }
    }

    /// A path from the root, if it is one of this crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let up = path.iter().take_while(|s| *s == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "ibprov" if self.file == "main.rs" => Some(rest.to_vec()),
            "self" => Some([self.module.as_slice(), rest].concat()),
            "super" => {
                let above = self.module.len().checked_sub(up)?;
                Some([&self.module[..above], &path[up..]].concat())
            }
            first => self.known.get(first).map(|target| [target.as_slice(), rest].concat()),
        }
    }

    /// Learn what names a `use` brings.
    fn names(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, called) = match tree {
            UseTree::Path(path) => return self.names(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.names(tree, before));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned())
            }
            UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(rename) => (with(&rename.ident), Some(rename.rename.to_string())),
            UseTree::Glob(_) => return,
        };
        if let (Some(called), Some(target)) = (called, self.absolute(&path)) {
            self.known.insert(called, target);
        }
    }

    fn note(&mut self, path: &[String], line: usize) {
        if let Some(path) = self.absolute(path) {
            self.imports.push(Import { by: self.file.clone(), line, path });
        }
    }

    fn uses(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.uses(&path.tree, &with(&path.ident), public),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.uses(tree, before, public);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.used(before, before.last().cloned(), name.ident.span(), public);
            }
            UseTree::Name(name) => {
                let called = Some(name.ident.to_string());
                self.used(&with(&name.ident), called, name.ident.span(), public);
            }
            UseTree::Rename(rename) => {
                let called = Some(rename.rename.to_string());
                self.used(&with(&rename.ident), called, rename.ident.span(), public);
            }
            UseTree::Glob(glob) => {
                let span = glob.star_token.spans[0];
                self.used(before, None, span, public);
            }
        }
    }

    fn used(
        &mut self,
        path: &[String],
        called: Option<String>,
        at: proc_macro2::Span,
        public: bool,
    ) {
        let local = [self.module.as_slice(), path].concat();
        let target = self.absolute(path).unwrap_or(local);
        if let Some(called) = called.filter(|_| public) {
            // Handed on, not used: who imports it from here imports it from there.
            self.renamed.push(((self.module.clone(), called), target));
            return;
        }
        self.note(path, at.start().line);
    }

    /// A path that begins with it is one of this crate.
    fn is_first(&self, word: &str) -> bool {
        matches!(word, "crate" | "super" | "self" | "ibprov") || self.known.contains_key(word)
    }

    /// Paths in the arguments of a macro, which are no syntax yet.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if self.is_first(&ident.to_string()) => {
                    let mut path = vec![ident.to_string()];
                    while let [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(next), ..] =
                        tokens.get(at..).unwrap_or_default()
                        && (a.as_char(), b.as_char()) == (':', ':')
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    self.note(&path, ident.span().start().line);
                }
                _ => {}
            }
        }
    }
}

/// `#[cfg(test)]`, alone or among others.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list().ok();
        attribute.path().is_ident("cfg")
            && list.is_some_and(|l| l.tokens.clone().into_iter().any(|t| t.to_string() == "test"))
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, inner: &'ast syn::ItemMod) {
        if is_test(&inner.attrs) {
            return;
        }
        if let Some((_, items)) = &inner.content {
            self.module.push(inner.ident.to_string());
            self.items(items);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            let public = !matches!(item.vis, syn::Visibility::Inherited);
            self.uses(&item.tree, &[], public);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if words.first().is_some_and(|w| self.is_first(w)) && words.len() > 1 {
            let line = path.segments.first().map_or(0, |s| s.ident.span().start().line);
            self.note(&words, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

/// The table of `tests/vm/README.md` has each scenario, and the bed that it has.
#[test]
fn each_scenario_stands_in_the_table_with_its_bed() {
    let lane = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vm");
    let text = fs::read_to_string(lane.join("README.md")).expect("tests/vm/README.md");
    let row = |line: &str| -> Option<(String, String)> {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let bed = cells.next()?.to_owned();
        let why = cells.next()?;
        assert!(!why.is_empty(), "{line}: no reason");
        Some((name, bed))
    };
    let told: Vec<(String, String)> = text.lines().filter_map(row).collect();
    let folder = lane.join("scenarios");
    let mut real = Vec::new();
    for entry in fs::read_dir(&folder).expect("scenarios") {
        let name = entry.expect("entry").file_name().into_string().expect("a name");
        // What git leaves behind of a folder that is no more.
        if !folder.join(&name).join("scenario.toml").exists() {
            continue;
        }
        let scenario = scenario::Scenario::load(&folder, &name);
        let bed = scenario.unwrap_or_else(|e| panic!("{e}")).settings.bed();
        real.push((name, bed.to_owned()));
    }
    real.sort();
    assert_eq!(told, real, "tests/vm/README.md: the table on the left, the folders on the right");
}

/// The targets of `[text](target)` in `text`, without those of the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://"))
}

/// The anchor of a heading, as the usual viewers of Markdown make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[test]
fn each_link_of_a_page_leads_somewhere() {
    fn pages(dir: &Path, list: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("a directory").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            match entry.file_type().expect("a type") {
                t if t.is_dir() && !["target", ".git", "vendor"].iter().any(|n| name == *n) => {
                    pages(&path, list);
                }
                t if t.is_file() && path.extension().is_some_and(|e| e == "md") => list.push(path),
                _ => {}
            }
        }
    }
    let mut list = Vec::new();
    pages(&project(), &mut list);
    let (mut checked, mut broken) = (0, Vec::new());
    for page in &list {
        let text = fs::read_to_string(page).expect("a page");
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = match file {
                "" => page.clone(),
                file => page.parent().expect("a folder").join(file),
            };
            let is_there = match heading {
                "" => file.exists(),
                heading => fs::read_to_string(&file).is_ok_and(|text| {
                    text.lines()
                        .filter(|line| line.starts_with('#'))
                        .any(|line| anchor(line.trim_start_matches('#')) == heading)
                }),
            };
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
            checked += 1;
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(checked > 200, "{checked} links in {} pages", list.len());
}

/// `vm card::NAME` is in tests/vm/card.rs, `tests fleet::NAME` in tests/fleet.rs, `lib plan/vf::NAME`
/// in src/plan/vf.rs or in the tests of that module.
#[test]
fn each_test_that_a_decision_names_exists() {
    let (mut named, mut missing) = (0, Vec::new());
    for entry in fs::read_dir(project().join("docs/decisions")).expect("docs/decisions") {
        let page = entry.expect("entry").path();
        let text = fs::read_to_string(&page).expect("a page");
        for proof in text.split('`').skip(1).step_by(2) {
            let Some((lane, test)) = proof.split_once(' ') else { continue };
            let Some((file, name)) = test.rsplit_once("::") else { continue };
            let files = match lane {
                "lib" => ["", "/mod", "/tests"].map(|of| format!("src/{file}{of}.rs")).to_vec(),
                "tests" => vec![format!("tests/{file}.rs")],
                _ => vec![format!("tests/{lane}/{file}.rs")],
            };
            let mut texts = files.iter().filter_map(|f| fs::read_to_string(project().join(f)).ok());
            if !texts.any(|text| text.contains(&format!("fn {name}("))) {
                missing.push(format!("{}: {proof}", page.display()));
            }
            named += 1;
        }
    }
    assert!(missing.is_empty(), "tests that do not exist:\n{}", missing.join("\n"));
    assert!(named > 100, "{named} tests are named");
}

#[test]
fn each_test_that_a_mutant_names_exists_on_a_machine() {
    let (mut named, mut missing) = (0, Vec::new());
    for entry in fs::read_dir(project().join("tests/mutants")).expect("tests/mutants") {
        let page = entry.expect("entry").path();
        let text = fs::read_to_string(&page).expect("a mutant");
        for proof in text.lines().filter_map(|line| line.strip_prefix("fails: ")) {
            let Some((lane @ ("boot" | "vm"), test)) = proof.split_once(' ') else { continue };
            let (file, name) = test.rsplit_once("::").expect("a module and a test");
            let file = project().join(format!("tests/{lane}/{}.rs", file.replace("::", "/")));
            let text = fs::read_to_string(file).unwrap_or_default();
            if !text.contains(&format!("fn {name}(")) {
                missing.push(format!("{}: {proof}", page.display()));
            }
            named += 1;
        }
    }
    assert!(missing.is_empty(), "tests that do not exist:\n{}", missing.join("\n"));
    assert!(named > 300, "{named} tests are named");
}

/// Each of these takes `/dev/kmsg` away, where causes are read: `ProtectClock=` does before
/// systemd 253, which is not what the guests of every lane have. What becomes opensm reads no
/// causes.
#[test]
fn no_unit_takes_the_kernel_log_away() {
    let keys = ["ProtectClock=", "PrivateDevices=", "DevicePolicy=", "DeviceAllow="];
    for entry in fs::read_dir(project().join("units")).expect("units") {
        let path = entry.expect("entry").path();
        if path.ends_with("ibprov-opensm@.service") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a unit");
        let line = text.lines().find(|l| keys.iter().any(|key| l.starts_with(key)));
        assert_eq!(line, None, "{}", path.display());
    }
}

/// What `packaging/crates.sh` says of the crates that are linked into the program.
fn crates(of: &[&str]) -> String {
    let script = project().join("packaging/crates.sh");
    let output = std::process::Command::new("sh").arg(script).args(of).output().expect("sh");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[test]
fn the_rpm_has_the_licences_of_all_linked_crates() {
    let spec = fs::read_to_string(project().join("packaging/rpm/ibprov.spec")).expect("the spec");
    let said = spec.lines().find_map(|l| l.strip_prefix("License:")).expect("License:");
    assert_eq!(said.trim(), crates(&["licence"]), "left: License: of packaging/rpm/ibprov.spec");
}

/// The file of the source archive also names each crate (`packaging/copyright.sh`).
#[test]
fn the_copyright_of_the_debian_package_has_the_text_of_each_licence() {
    let file = project().join("packaging/debian/copyright");
    let file = fs::read_to_string(file).expect("debian/copyright");
    let texts: BTreeSet<&str> = file
        .split("\n\n")
        .filter_map(|p| p.strip_prefix("License: ")?.split_once('\n').map(|(name, _)| name))
        .collect();
    let linked = crates(&[]);
    assert!(linked.lines().count() > 50, "{linked}");
    for line in linked.lines() {
        let expression = line.splitn(3, ' ').nth(2).expect("NAME VERSION LICENCE");
        for name in expression.replace(" AND ", " OR ").split(" OR ") {
            let name = name.trim_matches(['(', ')']).replace("WITH LLVM-", "with LLVM ");
            assert!(texts.contains(name.as_str()), "no text of {name}, of {line}");
        }
    }
}

/// What a machine can see of the style guide in CONTRIBUTING.md: a fragment of a sentence,
/// and what to write instead.
const AVOIDED: [(&str, &str); 9] = [
    (": want ", "expected"),
    (" is no GUID", "is not a GUID"),
    ("(s) ", "a singular and a plural"),
    ("nobody", "the service or process that does not"),
    (" anew", "rebind, create again"),
    ("somebody", "the administrator, or the process"),
    ("whoever", "the process that"),
    ("all the same", "nevertheless"),
    ("what is there", "the file, the value, the device"),
];

fn is_doc(group: &proc_macro2::Group) -> bool {
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

#[test]
fn no_message_has_what_the_style_guide_avoids() {
    struct Literals(Vec<(usize, String)>);
    impl Literals {
        fn tokens(&mut self, tokens: TokenStream) {
            for token in tokens {
                match token {
                    // `#[doc = "..."]`: a doc comment.
                    TokenTree::Group(group) if is_doc(&group) => {}
                    TokenTree::Group(group) => self.tokens(group.stream()),
                    TokenTree::Literal(literal) => {
                        self.0.push((literal.span().start().line, literal.to_string()));
                    }
                    _ => {}
                }
            }
        }
    }
    impl<'ast> Visit<'ast> for Literals {
        fn visit_item_mod(&mut self, inner: &'ast syn::ItemMod) {
            if !is_test(&inner.attrs) {
                visit::visit_item_mod(self, inner);
            }
        }

        fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
            self.0.push((literal.span().start().line, literal.value()));
        }

        /// `#[error("...")]`; a doc comment is an attribute too, and no message.
        fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
            if let syn::Meta::List(list) = &attribute.meta {
                self.tokens(list.tokens.clone());
            }
        }

        fn visit_macro(&mut self, called: &'ast syn::Macro) {
            self.tokens(called.tokens.clone());
        }
    }
    let (mut read, mut said) = (0, Vec::new());
    for file in SOURCES.files.values() {
        let text = fs::read_to_string(project().join("src").join(file)).expect("a source");
        let mut literals = Literals(Vec::new());
        literals.visit_file(&syn::parse_file(&text).expect("rust"));
        read += literals.0.len();
        for (line, text) in literals.0 {
            for (avoided, instead) in AVOIDED.iter().filter(|(avoided, _)| text.contains(avoided)) {
                said.push(format!("src/{file}:{line}: {avoided:?}: write {instead}: {text}"));
            }
        }
    }
    assert!(said.is_empty(), "against the style guide:\n{}", said.join("\n"));
    assert!(read > 3000, "{read} literals were read");
}
