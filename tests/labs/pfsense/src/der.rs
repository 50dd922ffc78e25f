//! What the firewall reads of a certificate: a walk over the few fields that it needs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::NaiveDateTime;

/// One element: its tag, its content, and its whole bytes.
struct Element<'d> {
    tag: u8,
    content: &'d [u8],
    whole: &'d [u8],
}

/// The first element of the bytes, and what follows it.
fn element(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7F);
        let number = rest
            .get(..count)?
            .iter()
            .try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))?;
        (number, &rest[count..])
    };
    let content = rest.get(..length)?;
    let whole = &bytes[..bytes.len() - rest.len() + length];
    Some((Element { tag, content, whole }, &rest[length..]))
}

fn elements(mut bytes: &[u8]) -> Vec<Element<'_>> {
    let mut out = Vec::new();
    while let Some((found, rest)) = element(bytes) {
        out.push(found);
        bytes = rest;
    }
    out
}

/// A public key.
pub(crate) struct Key {
    pub(crate) bits: Vec<u8>,
    pub(crate) is_rsa: bool,
}

fn decode(pem: &str) -> Option<Vec<u8>> {
    let lines = pem.lines().skip_while(|line| !line.contains("-----BEGIN CERTIFICATE")).skip(1);
    let body: String = lines.take_while(|line| !line.starts_with("-----")).map(str::trim).collect();
    STANDARD.decode(body).ok().filter(|bytes| !bytes.is_empty())
}

/// The fields of the signed part, without the version: serial, algorithm, issuer, validity, subject, key.
fn with_fields<T>(pem: &str, take: impl FnOnce(&[Element<'_>]) -> Option<T>) -> Option<T> {
    let bytes = decode(pem)?;
    let (certificate, _) = element(&bytes)?;
    let (signed, _) = element(certificate.content)?;
    let fields: Vec<Element<'_>> =
        elements(signed.content).into_iter().filter(|field| field.tag != 0xA0).collect();
    take(&fields)
}

/// The serial number in hexadecimal.
pub(crate) fn serial(pem: &str) -> Option<String> {
    with_fields(pem, |fields| Some(hex::encode(fields.first()?.content)))
}

/// The bytes that tell the public key.
pub(crate) fn public_key(pem: &str) -> Option<Vec<u8>> {
    with_fields(pem, |fields| Some(fields.get(5)?.whole.to_vec()))
}

/// Name and key of a request for a certificate.
pub(crate) fn request(pem: &str) -> Option<(String, Key)> {
    const RSA: [u8; 9] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01];
    with_fields(pem, |fields| {
        let key = elements(fields.get(2)?.content);
        let (algorithm, _) = element(key.first()?.content)?;
        // The first byte tells how many bits are not used.
        let bits = key.get(1)?.content.get(1..)?.to_vec();
        Some((common_name(fields.get(1)?)?, Key { bits, is_rsa: algorithm.content == RSA }))
    })
}

/// The common name of the subject.
pub(crate) fn subject(pem: &str) -> Option<String> {
    with_fields(pem, |fields| common_name(fields.get(4)?))
}

fn common_name(name: &Element<'_>) -> Option<String> {
    const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
    let sets = elements(name.content);
    let pairs = sets.iter().filter_map(|set| Some(elements(element(set.content)?.0.content)));
    let found = { pairs }.find(|pair| pair.first().is_some_and(|oid| oid.content == COMMON_NAME))?;
    Some(String::from_utf8_lossy(found.get(1)?.content).into_owned())
}

/// Whether it may sign others: the extension of basic constraints says so.
pub(crate) fn is_authority(pem: &str) -> bool {
    const CONSTRAINTS: [u8; 3] = [0x55, 0x1D, 0x13];
    let found = with_fields(pem, |fields| {
        let extensions = fields.iter().find(|field| field.tag == 0xA3)?;
        let all = elements(element(extensions.content)?.0.content);
        let parts = all.iter().map(|extension| elements(extension.content));
        let own = { parts }.find(|parts| parts.first().is_some_and(|oid| oid.content == CONSTRAINTS))?;
        // The value is a sequence in a string of bytes; its first element is the claim.
        let value = element(own.last()?.content)?.0;
        let (claim, _) = element(value.content)?;
        Some(claim.tag == 0x01 && claim.content == [0xFF])
    });
    found.unwrap_or(false)
}

/// From and until when it is valid, in seconds since 1970.
pub(crate) fn validity(pem: &str) -> Option<(i64, i64)> {
    with_fields(pem, |fields| {
        let times = elements(fields.get(3)?.content);
        Some((time(times.first()?)?, time(times.get(1)?)?))
    })
}

/// Years have two digits, or four under another tag.
fn time(element: &Element<'_>) -> Option<i64> {
    let text = str::from_utf8(element.content).ok()?.trim_end_matches('Z');
    let text = if element.tag == 0x17 { format!("20{text}") } else { text.to_owned() };
    Some(NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%S").ok()?.and_utc().timestamp())
}
