//! One statement after the other.

use std::collections::BTreeMap;

use super::Variables;
use super::lexer::{escape, statements, within, words};
use crate::access::Who;
use crate::call::{Call, Output};
use crate::console;
use crate::device::Router;
use crate::duration;
use crate::facts::{Facts, Kind, Menu};
use crate::print;
use crate::refusal::Refusal;
use crate::store::{Record, parse_id};

/// Statements that one run may carry out.
const STEPS_MAX: u32 = 20_000;

/// What follows a statement.
pub(crate) enum Next {
    On,
    /// The next statement waits for so many seconds.
    Wait(u64),
}

/// The state of a script between its statements.
#[derive(Clone)]
pub(crate) struct Machine {
    who: Who,
    variables: Variables,
    /// The menu in which relative commands are.
    path: String,
    output: String,
    steps: u32,
}

type Ran<T> = Result<T, Refusal>;

impl Machine {
    pub(crate) fn new(who: Who) -> Self {
        Self { who, variables: Variables::new(), path: String::new(), output: String::new(), steps: 0 }
    }

    /// What was printed, without the end of the last line.
    pub(crate) fn output(self) -> String {
        self.output.trim_end_matches('\n').to_owned()
    }

    pub(crate) fn run(&mut self, router: &mut Router, statement: &str) -> Ran<Next> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(Refusal::failure("script takes too long"));
        }
        let statement = statement.trim();
        let words = words(statement);
        let Some(first) = words.first() else { return Ok(Next::On) };
        let name = first.trim_start_matches([':', '/']);
        let rest = &words[1..];
        match name {
            "delay" => {
                let text = self.joined(router, rest)?;
                return Ok(Next::Wait(duration::secs(&text).unwrap_or(1)));
            }
            "put" => {
                let text = self.joined(router, rest)?;
                self.output.push_str(&text);
                self.output.push('\n');
            }
            "local" | "global" | "set" if first.starts_with(':') => self.assign(router, rest)?,
            "error" => return Err(Refusal::Unclear(self.joined(router, rest)?)),
            "log" if rest.len() >= 2 && ["info", "warning", "error", "debug"].contains(&rest[0].as_str()) => {
                let text = self.joined(router, &rest[1..])?;
                router.note(&format!("script,{}", rest[0]), &text);
            }
            "if" => self.condition(router, rest)?,
            "do" => self.guarded(router, rest)?,
            "foreach" => self.each(router, rest)?,
            _ if within(statement, '{', '}').is_some() => self.block(router, statement)?,
            _ => {
                let output = self.command(router, &words)?.unwrap_or_default();
                if words.iter().any(|word| word == "print" || word.ends_with("/print")) {
                    self.output.push_str(&output);
                }
            }
        }
        Ok(Next::On)
    }

    /// The statements within braces. Delays in them do not hold up the rest.
    fn block(&mut self, router: &mut Router, word: &str) -> Ran<()> {
        let inner = within(word, '{', '}').unwrap_or(word).to_owned();
        let path = self.path.clone();
        let done = statements(&inner).iter().try_for_each(|statement| self.run(router, statement).map(drop));
        self.path = path;
        done
    }

    fn assign(&mut self, router: &mut Router, words: &[String]) -> Ran<()> {
        let Some(name) = words.first() else { return Err(Refusal::unclear("expected variable name")) };
        let name = name.trim_start_matches('$').to_owned();
        if words.len() > 1 {
            let value = self.joined(router, &words[1..])?;
            self.variables.insert(name, value);
        } else {
            self.variables.entry(name).or_default();
        }
        Ok(())
    }

    fn condition(&mut self, router: &mut Router, words: &[String]) -> Ran<()> {
        let Some(test) = words.first() else { return Err(Refusal::unclear("expected condition")) };
        let value = self.value(router, test)?;
        let wanted = if value == "true" { "do=" } else { "else=" };
        match words.iter().find_map(|word| word.strip_prefix(wanted)) {
            Some(block) => self.block(router, block),
            None => Ok(()),
        }
    }

    fn guarded(&mut self, router: &mut Router, words: &[String]) -> Ran<()> {
        let Some(block) = words.first() else { return Ok(()) };
        let done = self.block(router, &block.clone());
        match (done, words.iter().find_map(|word| word.strip_prefix("on-error="))) {
            (Err(_), Some(block)) => self.block(router, block),
            (done, _) => done,
        }
    }

    fn each(&mut self, router: &mut Router, words: &[String]) -> Ran<()> {
        let name = words.first().cloned().unwrap_or_default();
        let list = words.iter().find_map(|word| word.strip_prefix("in=")).unwrap_or_default().to_owned();
        let block = words.iter().find_map(|word| word.strip_prefix("do=")).unwrap_or_default().to_owned();
        let items = self.value(router, &list)?;
        for item in items.split([',', ';']).filter(|item| !item.is_empty()) {
            self.variables.insert(name.clone(), item.to_owned());
            self.block(router, &block)?;
        }
        Ok(())
    }

    fn joined(&mut self, router: &mut Router, words: &[String]) -> Ran<String> {
        let values = words.iter().map(|word| self.value(router, word)).collect::<Ran<Vec<_>>>()?;
        Ok(values.join(" "))
    }

    /// The value of a word: quotes, variables, commands in brackets and expressions in parentheses.
    fn value(&mut self, router: &mut Router, word: &str) -> Ran<String> {
        let chars: Vec<char> = word.chars().collect();
        let mut out = String::new();
        let mut at = 0;
        let mut is_quoted = false;
        while at < chars.len() {
            match chars[at] {
                '"' => is_quoted = !is_quoted,
                '\\' if is_quoted => {
                    let (c, length) = escape(&chars[at + 1..]);
                    out.push(c);
                    at += length;
                }
                '$' => {
                    let end = name_end(&chars, at + 1);
                    let name: String = chars[at + 1..end].iter().filter(|c| **c != '"').collect();
                    out.push_str(self.variables.get(&name).map_or("", String::as_str));
                    at = end - 1;
                }
                '[' => {
                    let end = closing(&chars, at, '[', ']');
                    let inner: String = chars[at + 1..end].iter().collect();
                    out.push_str(&self.substituted(router, &inner)?);
                    at = end;
                }
                '(' if !is_quoted => {
                    let end = closing(&chars, at, '(', ')');
                    let inner: String = chars[at + 1..end].iter().collect();
                    out.push_str(&self.expression(router, &inner)?);
                    at = end;
                }
                c => out.push(c),
            }
            at += 1;
        }
        Ok(out)
    }

    /// Comparisons and joins of two or more values.
    fn expression(&mut self, router: &mut Router, text: &str) -> Ran<String> {
        let spaced = ["!=", ">=", "<=", "="].iter().fold(text.to_owned(), |text, sign| {
            if text.contains(' ') { text } else { text.replacen(sign, &format!(" {sign} "), 1) }
        });
        let words = words(&spaced);
        let Some((first, rest)) = words.split_first() else { return Ok(String::new()) };
        let mut left = self.value(router, first)?;
        for pair in rest.chunks(2) {
            let [operator, right] = pair else { return Err(Refusal::unclear("expected value")) };
            let right = self.value(router, right)?;
            let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
            let compared =
                |holds: fn(i64, i64) -> bool| numbers.is_some_and(|(a, b)| holds(a, b)).to_string();
            left = match operator.as_str() {
                "." => left + &right,
                "=" => (left == right).to_string(),
                "!=" => (left != right).to_string(),
                ">" => compared(|a, b| a > b),
                "<" => compared(|a, b| a < b),
                ">=" => compared(|a, b| a >= b),
                "<=" => compared(|a, b| a <= b),
                "+" => numbers.map_or_else(String::new, |(a, b)| (a + b).to_string()),
                "-" => numbers.map_or_else(String::new, |(a, b)| (a - b).to_string()),
                "and" | "&&" => (left == "true" && right == "true").to_string(),
                "or" | "||" => (left == "true" || right == "true").to_string(),
                _ => return Err(Refusal::unclear("unknown operator")),
            };
        }
        Ok(left)
    }

    /// The value of a command in brackets.
    fn substituted(&mut self, router: &mut Router, text: &str) -> Ran<String> {
        let words = words(text);
        let Some((first, rest)) = words.split_first() else { return Ok(String::new()) };
        match first.as_str() {
            ":len" => {
                let value = self.joined(router, rest)?;
                let is_ids = value.starts_with('*');
                let count = if is_ids { value.split(',').count() } else { value.chars().count() };
                Ok(count.to_string())
            }
            ":tostr" | ":tonum" | ":pick" => self.joined(router, rest),
            _ => Ok(self.command(router, &words)?.unwrap_or_default().trim_end().to_owned()),
        }
    }

    /// A command of a menu, or a step into a menu.
    fn command(&mut self, router: &mut Router, words: &[String]) -> Ran<Option<String>> {
        let mut path = self.path.clone();
        let mut rest = words.iter();
        let mut command = None;
        for word in rest.by_ref() {
            if word.starts_with('/') {
                path.clear();
            }
            let parts: Vec<&str> = word.split('/').filter(|part| !part.is_empty()).collect();
            for part in parts {
                let deeper = if path.is_empty() { part.to_owned() } else { format!("{path}/{part}") };
                if part == ".." {
                    path = path.rsplit_once('/').map_or_else(String::new, |(upper, _)| upper.to_owned());
                } else if router.has_directory(&deeper) {
                    path = deeper;
                } else {
                    command = Some(part.to_owned());
                }
            }
            if command.is_some() {
                break;
            }
        }
        let Some(command) = command else {
            self.path = path;
            return Ok(None);
        };
        let facts = Facts::get().menu(&path).filter(|(path, _)| path.is_empty() || router.has_menu(path));
        let Some((path, menu)) = facts else {
            return Err(Refusal::Unclear(format!("bad command name {command}")));
        };
        let words: Vec<String> = rest.cloned().collect();
        // Brackets within the command are in its menu.
        let outer = std::mem::replace(&mut self.path, path.to_owned());
        if command == "find" {
            let found = self.find(router, path, menu, &words);
            self.path = outer;
            return found.map(Some);
        }
        let arguments = self.arguments(router, menu, &command, &words);
        self.path = outer;
        let (args, value_name) = arguments?;
        if args.get("numbers").is_some_and(String::is_empty) {
            // Nothing was found, and nothing is done.
            return Ok(None);
        }
        let who = self.who.clone();
        let call = Call { path, menu, command: &command, args, query: Vec::new(), proplist: None, who: &who };
        let done = console::run(router, &call)?;
        Ok(shown(done.output, value_name.as_deref()))
    }

    /// Named and unnamed parameters. The unnamed ones are rows, then a destination or the name of a value.
    fn arguments(
        &mut self,
        router: &mut Router,
        menu: &Menu,
        command: &str,
        words: &[String],
    ) -> Ran<(BTreeMap<String, String>, Option<String>)> {
        let mut args = BTreeMap::new();
        let mut unnamed = Vec::new();
        for word in words {
            match assignment(word) {
                Some((name, value)) => drop(args.insert(name.to_owned(), self.value(router, value)?)),
                None => unnamed.push(self.value(router, word)?),
            }
        }
        let mut unnamed = unnamed.into_iter();
        let takes_rows = menu.kind_in(router.release) == Kind::List
            && ["set", "get", "remove", "enable", "disable", "move", "unset", "reset-counters", "run"]
                .contains(&command);
        if takes_rows && !args.contains_key("numbers") && !args.contains_key(".id") {
            // Ids are separated as in lists of the language.
            if let Some(rows) = unnamed.next() {
                args.insert("numbers".to_owned(), rows.replace(';', ","));
            }
        }
        let mut value_name = None;
        for text in unnamed {
            match command {
                "move" => drop(args.insert("destination".to_owned(), text)),
                "get" => value_name = Some(text),
                "unset" => drop(args.insert("value-name".to_owned(), text)),
                "import" => drop(args.insert("file-name".to_owned(), text)),
                "reboot" | "print" => {}
                _ => drop(args.insert(text, String::new())),
            }
        }
        if command == "get" {
            value_name = args.remove("value-name").or(value_name);
        }
        Ok((args, value_name))
    }

    /// The ids of the rows that fit every condition, joined by comma.
    fn find(
        &mut self,
        router: &mut Router,
        path: &'static str,
        menu: &Menu,
        words: &[String],
    ) -> Ran<String> {
        let who = Who::everything("find");
        let mut rows: Vec<Record> = print::records(router, path, menu, &who);
        for word in words.iter().filter(|word| !["where", "and"].contains(&word.as_str())) {
            if let Some((name, value)) = word.split_once('~') {
                let wanted = self.value(router, value)?;
                let wanted = wanted.trim_start_matches('^').trim_end_matches('$').to_owned();
                rows.retain(|row| row.get(name).is_some_and(|own| own.contains(&wanted)));
            } else if let Some((name, value)) = assignment(word) {
                let wanted = self.value(router, value)?;
                let wanted = match wanted.as_str() {
                    "yes" => "true".to_owned(),
                    "no" => "false".to_owned(),
                    _ => wanted,
                };
                let (name, is_other) = name.strip_suffix('!').map_or((name, false), |name| (name, true));
                rows.retain(|row| {
                    let own = row.get(name).map_or("", String::as_str);
                    let holds = own == wanted || (own.is_empty() && wanted == "false");
                    holds != is_other
                });
            } else {
                let (name, wanted) =
                    word.strip_prefix('!').map_or((word.as_str(), true), |name| (name, false));
                rows.retain(|row| row.get(name).is_some_and(|own| own == "true") == wanted);
            }
        }
        let ids = rows.iter().filter_map(|row| row.get(".id").filter(|id| parse_id(id).is_some()).cloned());
        Ok(ids.collect::<Vec<_>>().join(","))
    }
}

/// What a command prints.
fn shown(output: Output, value_name: Option<&str>) -> Option<String> {
    let line = |row: &Record| {
        let pairs = row.iter().map(|(name, value)| format!("{name}={}", super::quoted(value)));
        pairs.collect::<Vec<_>>().join(" ") + "\n"
    };
    match output {
        Output::Nothing => None,
        Output::Value(text) => Some(text),
        Output::Object(row) => {
            Some(value_name.map_or_else(|| line(&row), |name| row.get(name).cloned().unwrap_or_default()))
        }
        Output::Rows(rows) => Some(match (value_name, rows.first()) {
            (Some(name), Some(row)) => row.get(name).cloned().unwrap_or_default(),
            _ => rows.iter().map(line).collect(),
        }),
    }
}

/// `name=value`, where the name is no quote, variable or bracket.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty() && !name.contains(['"', '[', '$', '(', '{']);
    is_name.then_some((name, value))
}

fn name_end(chars: &[char], start: usize) -> usize {
    let is_quoted = chars.get(start) == Some(&'"');
    let fits = |c: &char| c.is_alphanumeric() || (is_quoted && *c != '"') || *c == '-';
    let from = start + usize::from(is_quoted);
    let length = chars[from.min(chars.len())..].iter().take_while(|c| fits(c)).count();
    (from + length + usize::from(is_quoted)).min(chars.len())
}

/// The place of the bracket that closes the one at `at`, or the end.
fn closing(chars: &[char], at: usize, open: char, close: char) -> usize {
    let mut depth = 0;
    let mut is_quoted = false;
    for (index, c) in chars.iter().enumerate().skip(at) {
        match *c {
            '"' => is_quoted = !is_quoted,
            c if c == open && !is_quoted => depth += 1,
            c if c == close && !is_quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    chars.len()
}
