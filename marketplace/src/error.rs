//! Why a package is refused: one variant per reason, none of which needs the
//! reader to know this code.

use crate::schema::SchemaError;

/// Why a package was refused. Nothing of it reached the compiler.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// `manifest.json`, `manifest.sig` or `description.json` is absent.
    #[error("package has no '{0}'")]
    Missing(&'static str),
    /// A file or folder of the package could not be read.
    #[error("'{name}' of the package cannot be read")]
    Unreadable {
        name: String,
        #[source]
        source: std::io::Error,
    },
    /// A symbolic link, a device or a socket, which a package never contains.
    #[error("'{0}' is neither a regular file nor a folder; packages contain nothing else")]
    NotRegular(String),
    #[error("a package may have {max} files; this one has more")]
    TooManyFiles { max: usize },
    #[error("'{name}' has more than {max} bytes, the most that is accepted")]
    TooLarge { name: String, max: u64 },
    #[error("the files of the package have more than {max} bytes together, the most that is accepted")]
    PackageTooLarge { max: u64 },
    /// It is no ZIP archive, or one of a form that packages do not have.
    #[error("the archive is not accepted: {0}; 'heddle-package pack --zip' makes one that is")]
    Archive(String),
    #[error("the archive has more than {max} bytes, the most that is accepted")]
    ArchiveTooLarge { max: usize },
    /// Its files are so much larger than the archive that they are not of a package.
    #[error("the files of the archive have more than {max} times its bytes; packages do not")]
    ArchiveRatio { max: u64 },
    /// `manifest.sig` is not the JSON that it should be.
    #[error("'manifest.sig' is not a signature file: {0}")]
    SignatureFormat(String),
    /// No signature is by a key that the server trusts.
    #[error("no signature is by a trusted key; signed by {}; add the publisher's key to the trusted keys, or get the package from a trusted publisher", .0.join(", "))]
    UntrustedKey(Vec<String>),
    /// A trusted key is named, but it did not sign these bytes.
    #[error(
        "the signature by key '{0}' does not fit 'manifest.json'; the manifest was changed after it was signed"
    )]
    BadSignature(String),
    /// The signed manifest names someone else as its publisher.
    #[error("the manifest names the publisher '{manifest}', but it was signed by '{signer}'")]
    Publisher { manifest: String, signer: String },
    /// The publisher's key is trusted, but not for this id.
    #[error(
        "the key of publisher '{publisher}' may sign {}, and the package is '{id}'; name '{id}' among the key's 'ids' in the trusted keys if the publisher may provide it",
        .ids.join(", ")
    )]
    IdNotGranted { publisher: String, id: String, ids: Vec<String> },
    /// The manifest is not JSON, or a key is unknown, absent or of another type.
    #[error("'manifest.json' does not follow the format: {0}")]
    ManifestFormat(String),
    #[error("key '{0}' occurs twice in one object of 'manifest.json'")]
    DuplicateKey(String),
    #[error("'manifest.json' is nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("schema {0} of the manifest is unknown; this version reads schema 1")]
    Schema(u32),
    #[error(
        "id '{0}' is not accepted; an id starts with a-z, continues with a-z, 0-9 or '-' and has 3 to 41 characters"
    )]
    Id(String),
    #[error("id '{0}' is a reserved word; choose another one")]
    ReservedId(String),
    #[error("interface version '{found}' is not supported; supported: {supported}")]
    Api { found: String, supported: String },
    /// A key of the manifest, or a file, that packages of this kind do not have.
    #[error("'{key}' does not belong to a package of kind '{kind}'; {advice}")]
    OtherKind { key: String, kind: &'static str, advice: &'static str },
    /// Something that a plugin declares and that could not be carried out as written.
    #[error("{part} '{name}': {problem}")]
    Plugin { part: &'static str, name: String, problem: String },
    /// A text of the manifest is empty, too long or not of its form.
    #[error("{field} '{value}' is not accepted; {expected}")]
    Field { field: String, value: String, expected: String },
    #[error("limit '{name}' is {value}; 1 to {max} is accepted")]
    Limit { name: &'static str, value: u32, max: u32 },
    /// A path that could leave the package or mean two things on some system.
    #[error("file name '{name}' is not accepted: {reason}")]
    FileName { name: String, reason: &'static str },
    #[error("file '{0}' is listed twice, or in two spellings that differ in case only")]
    DuplicateFile(String),
    #[error("'{0}' is the name of a file and of a folder")]
    FileIsFolder(String),
    #[error("component '{0}' is not among the files of the manifest")]
    ComponentNotListed(String),
    /// What the adapter manages does not fit together, or is not JSON of its format.
    #[error("'description.json' is not accepted: {0}")]
    Description(String),
    #[error("config-schema: {0}")]
    ConfigSchema(SchemaError),
    /// A shape of credentials that no credential could have.
    #[error("credentials '{shape}': {problem}")]
    Credential { shape: String, problem: String },
    /// A session declaration that could not be carried out as written.
    #[error("auth '{session}': {problem}")]
    Session { session: String, problem: String },
    /// A channel that could not be opened or understood as written.
    #[error("push '{channel}': {problem}")]
    Channel { channel: String, problem: String },
    /// A rule that would let through other requests than its author means.
    #[error("reads rule '{rule}': {problem}")]
    ReadRule { rule: String, problem: String },
    #[error("file '{0}' is listed in the manifest but missing")]
    FileMissing(String),
    #[error("file '{0}' is not listed in the manifest")]
    FileUnlisted(String),
    #[error("file '{name}' has {found} bytes; the manifest says {listed}")]
    FileSize { name: String, listed: u64, found: u64 },
    #[error("file '{0}' is not the one that was signed: its SHA-256 differs from the manifest's")]
    FileHash(String),
    #[error("'{0}' is a core module; encode it as a component first")]
    CoreModule(String),
    #[error("'{0}' is compiled machine code; a package contains the component itself")]
    Precompiled(String),
    #[error("'{0}' is not a WebAssembly component")]
    NotComponent(String),
}
