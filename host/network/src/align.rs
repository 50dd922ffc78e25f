//! Layer 1: what most controllers of a site have, what one of them has, or what a request says, brought to all of them.

use std::collections::{BTreeMap, BTreeSet};

use heddle_changes::Cause;
use heddle_core::vlan::VlanFault;
use heddle_core::{ControllerId, SiteId, SiteLevel};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_store::site_brains::{self, SiteBrain};
use heddle_store::sites;

use crate::compare::expected::Expected;
use crate::compare::remedy::{Left, Rules, remedy};
use crate::compare::{Finding, compare};
use crate::intent;
use crate::site::facts::Facts;
use crate::site::gathered::KINDS;
use crate::site::load;
use crate::staging::{By, Staging, stage, writable};

/// Why the first VLAN of a controller is not made without being asked for.
const FIRST: &str =
    "it has no VLAN yet, and the first one changes how all of its ports work: name it in 'controller_ids'";

/// What the VLANs of a site are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    /// The intent that was read from the brain of the site, where it has one; else what most controllers have.
    IntentOrMajority,
    Controller(ControllerId),
}

heddle_core::words! {
    /// What the VLANs of a site were compared with.
    pub enum ComparedWith {
        /// The canonical VLANs of the site.
        Intent = "intent",
        Controller = "controller",
        /// What most of the controllers that use VLANs have; half of them are enough.
        Majority = "majority",
    }
}

/// Which of the differences of a site a request is about.
#[derive(Debug, Default)]
pub(crate) struct Narrowed {
    /// All controllers where it is empty.
    pub(crate) controllers: Vec<ControllerId>,
    /// All VLANs where it is empty.
    pub(crate) vlans: Vec<u16>,
}

impl Narrowed {
    pub(crate) fn is_about(&self, facts: &Facts, finding: &Finding) -> bool {
        let controller = facts.domains[finding.domain].controller_id;
        (self.controllers.is_empty() || self.controllers.contains(&controller))
            && (self.vlans.is_empty() || self.vlans.contains(&finding.vlan))
    }
}

/// The VLANs of a site, what they are compared with, and what differs.
pub(crate) struct Compared {
    pub(crate) facts: Facts,
    pub(crate) with: ComparedWith,
    pub(crate) findings: Vec<Finding>,
    /// The domains whose word holds where the ends of a link differ.
    right: BTreeSet<usize>,
    /// The domains of the brain, which is only read.
    brain: BTreeSet<usize>,
}

/// The domains of a controller.
pub(crate) fn domains_of(facts: &Facts, controller: ControllerId) -> BTreeSet<usize> {
    let domains = facts.domains.iter().enumerate();
    domains.filter(|(_, domain)| domain.controller_id == controller).map(|(at, _)| at).collect()
}

/// The domains of these controllers.
///
/// # Errors
/// One of them has nothing at the site.
fn named(facts: &Facts, controllers: &[ControllerId]) -> Result<BTreeSet<usize>, Error> {
    let mut all = BTreeSet::new();
    for (at, controller) in controllers.iter().enumerate() {
        let own = domains_of(facts, *controller);
        if own.is_empty() {
            let field = format!("controller_ids.{at}");
            return Err(Error::field(&field, "the controller has nothing at this site"));
        }
        all.extend(own);
    }
    Ok(all)
}

/// Compares a site, without a request to a device. The controllers that are named are compared also where they have no VLAN
/// yet.
///
/// # Errors
/// The caller sees no such site, or no such controller there.
pub(crate) async fn compared(
    app: &App,
    caller: &Caller,
    site: SiteId,
    (with, controllers): (With, &[ControllerId]),
) -> Result<Compared, Error> {
    let mut tx = app.db.read().await?;
    let stored = load::stored(&mut tx, app, &caller.scope(), site, &KINDS).await?;
    let brain = site_brains::find(&mut tx, &caller.scope(), site).await?;
    let intent = match (&brain, with) {
        (Some(brain), With::IntentOrMajority) if brain.read_at.is_some() => {
            Some(intent::stored(&mut tx, site).await?)
        }
        _ => None,
    };
    drop(tx);
    let controllers = controllers.to_vec();
    task::block(move || compared_with(stored.facts(), brain.as_ref(), (with, intent), &controllers)).await
}

fn compared_with(
    facts: Facts,
    brain: Option<&SiteBrain>,
    (with, intent): (With, Option<BTreeMap<u16, Option<String>>>),
    controllers: &[ControllerId],
) -> Result<Compared, Error> {
    let mut named = named(&facts, controllers)?;
    let of_brain = brain.map(|brain| domains_of(&facts, brain.controller_id)).unwrap_or_default();
    let (with, expected, right) = match (with, intent) {
        (With::Controller(id), _) => {
            let own = domains_of(&facts, id);
            let first = own.first().copied();
            let at = first
                .ok_or_else(|| Error::field("controller_id", "the controller has nothing at this site"))?;
            (ComparedWith::Controller, Expected::domain(&facts, at), own)
        }
        (With::IntentOrMajority, Some(intent)) => {
            let limbs = intent::limbs(&facts, brain);
            named.extend(intent::named_limbs(&facts, brain));
            (ComparedWith::Intent, Expected::intent(intent, limbs), of_brain.clone())
        }
        (With::IntentOrMajority, None) => {
            (ComparedWith::Majority, Expected::majority(&facts), BTreeSet::new())
        }
    };
    let findings = compare(&facts, &expected.with_named(named));
    Ok(Compared { facts, with, findings, right, brain: of_brain })
}

/// What a request is about, how it is told of, and where it comes from.
pub(crate) struct Asked<'a> {
    pub(crate) site: SiteId,
    pub(crate) narrowed: Narrowed,
    pub(crate) removes_extra: bool,
    pub(crate) notes: Option<&'a str>,
    pub(crate) cause: Cause<'a>,
}

impl Asked<'_> {
    fn by<'b>(&'b self, caller: &'b Caller) -> By<'b> {
        By { caller, cause: self.cause, site: self.site, notes: self.notes }
    }
}

/// Stages what brings the controllers of a site to what they are compared with.
///
/// # Errors
/// As [`compared`]; or the caller may not write at the site.
pub(crate) async fn align(
    app: &App,
    caller: &Caller,
    asked: &Asked<'_>,
    with: With,
) -> Result<Staging, Error> {
    admit(app, caller, asked.site).await?;
    let Compared { facts, findings, right, brain, .. } =
        compared(app, caller, asked.site, (with, &asked.narrowed.controllers)).await?;
    let findings: Vec<Finding> =
        findings.into_iter().filter(|finding| asked.narrowed.is_about(&facts, finding)).collect();
    let rules = Rules { read_only: brain, right, removes_extra: asked.removes_extra };
    let writable = writable(app, &facts);
    let (facts, remedy) = task::block(move || {
        let remedy = remedy(&facts, &findings, &writable, &rules);
        (facts, remedy)
    })
    .await;
    stage(app, asked.by(caller), &facts, remedy).await
}

/// Stages what brings these VLANs to the controllers of a site, beside what they have.
///
/// # Errors
/// The caller sees no such site, or may not write there.
pub(crate) async fn distribute(
    app: &App,
    caller: &Caller,
    asked: &Asked<'_>,
    vlans: BTreeMap<u16, Option<String>>,
) -> Result<Staging, Error> {
    admit(app, caller, asked.site).await?;
    let mut tx = app.db.read().await?;
    let stored = load::stored(&mut tx, app, &caller.scope(), asked.site, &KINDS).await?;
    let brain = site_brains::find(&mut tx, &caller.scope(), asked.site).await?;
    drop(tx);
    let controllers = asked.narrowed.controllers.clone();
    let given = task::block(move || Given::of(stored.facts(), brain.as_ref(), vlans, controllers)).await?;
    let writable = writable(app, &given.facts);
    let (facts, remedy) = task::block(move || {
        let Given { facts, findings, first, rules } = given;
        let mut remedy = remedy(&facts, &findings, &writable, &rules);
        remedy.left.extend(first.into_iter().map(|finding| Left { finding, reason: FIRST.to_owned() }));
        (facts, remedy)
    })
    .await;
    stage(app, asked.by(caller), &facts, remedy).await
}

/// How a site differs from VLANs that a request says.
struct Given {
    facts: Facts,
    findings: Vec<Finding>,
    /// First VLANs of controllers that the request does not name.
    first: Vec<Finding>,
    rules: Rules,
}

impl Given {
    fn of(
        facts: Facts,
        brain: Option<&SiteBrain>,
        vlans: BTreeMap<u16, Option<String>>,
        controllers: Vec<ControllerId>,
    ) -> Result<Self, Error> {
        let brain = brain.map(|brain| domains_of(&facts, brain.controller_id)).unwrap_or_default();
        let named = named(&facts, &controllers)?;
        let narrowed = Narrowed { vlans: vlans.keys().copied().collect(), controllers };
        let targets: BTreeSet<usize> = (0..facts.domains.len()).filter(|at| !brain.contains(at)).collect();
        let found = compare(&facts, &Expected::given(vlans, targets.clone()).with_named(targets));
        // Other faults of these VLANs are ignored here.
        let is_meant = |finding: &Finding| {
            let is_of_request = !matches!(finding.class, VlanFault::SubnetOverlaps | VlanFault::Orphan);
            is_of_request && narrowed.is_about(&facts, finding)
        };
        let meant = found.into_iter().filter(is_meant);
        let is_first = |finding: &Finding| {
            let is_missing = finding.class == VlanFault::Missing;
            is_missing && !facts.domains[finding.domain].uses_vlans() && !named.contains(&finding.domain)
        };
        let (first, findings) = meant.partition(is_first);
        Ok(Self { facts, findings, first, rules: Rules { read_only: brain, ..Rules::default() } })
    }
}

/// Refuses a caller that sees no such site, or may not write there, before anything is looked at.
pub(crate) async fn admit(app: &App, caller: &Caller, site: SiteId) -> Result<(), Error> {
    let mut tx = app.db.single().await?;
    let visible = sites::visible(&mut tx, &caller.scope(), &[site]).await?;
    drop(tx);
    if visible.is_empty() {
        return Err(Error::NotFound("site"));
    }
    caller.require_level(site, SiteLevel::Write)
}
