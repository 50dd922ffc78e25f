//! The simulated router as a process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The answer to a plain request, until the connection closes.
fn get(url: &str, path: &str) -> io::Result<String> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn prints_its_addresses_and_ends_when_told_to() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_lab-openwrt"))
        .args(["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--password", "p"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["certificate_sha256"], Value::Null);
    let (url, control) = (ready["url"].as_str().unwrap(), ready["control_url"].as_str().unwrap());
    assert!(get(control, "/health").unwrap().ends_with("\r\n\r\nok\n"));
    assert!(get(control, "/configs/firewall").unwrap().contains("config defaults"));
    assert!(get(url, "/ubus").unwrap().starts_with("HTTP/1.1 404 "));
    let told = Command::new("kill").args(["-TERM", &program.id().to_string()]).status().unwrap();
    assert!(told.success() && program.wait().unwrap().success());
}
