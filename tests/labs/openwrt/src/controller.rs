//! The router as the skeleton sees it: JSON-RPC at one path, and the skeleton's faults beside its own.

use heddle_lab::{Answer, Context, Controller, FaultKind, Request};
use serde_json::Value;

use crate::device::{Device, Restart};
use crate::dispatch;
use crate::fault::{Effect, Fault};

impl Controller for Device {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        if let Some(answer) = self.newer_form(request) {
            return answer;
        }
        match (request.path.as_str(), request.method.as_str()) {
            ("/ubus", "POST") => {}
            ("/ubus", "PUT") => return Answer::text(400, "Bad Request"),
            _ => return Answer::text(404, "Not Found"),
        }
        match dispatch::answer(self, &request.body) {
            dispatch::Answer::Json(json) => Answer::json(200, &json),
            dispatch::Answer::LastJson(json) => Answer::json(200, &json).closing(),
            dispatch::Answer::Lost(effect) => {
                take_effect(self, effect, context);
                Answer::lost()
            }
        }
    }

    fn state(&self, context: &Context) -> Value {
        let stops = |kind: &FaultKind| matches!(kind, FaultKind::Cut | FaultKind::Hang);
        self.to_json(!context.is_booting() && !context.faults.in_force().any(|fault| stops(&fault.kind)))
    }

    fn advance(&mut self, context: &mut Context) {
        Device::advance(self, context.now());
    }

    fn is_reachable(&self) -> bool {
        self.is_up()
    }

    fn end_sessions(&mut self, _context: &mut Context) {
        Device::end_sessions(self);
    }

    fn restart(&mut self, _context: &mut Context) {
        Device::restart(self, Restart::Reboot);
    }

    fn socket_texts(&mut self, socket: u64, _context: &mut Context) -> Option<Vec<String>> {
        self.streams.take(socket, self.now)
    }

    fn socket_closed(&mut self, socket: u64) {
        self.streams.close(socket);
    }

    fn control(&mut self, request: &Request, context: &mut Context) -> Option<Answer> {
        crate::control::answer(self, request, context)
    }
}

/// Orders a fault of the router: most are the skeleton's, triggers wait for their call.
pub(crate) fn order(device: &mut Device, fault: Fault, context: &mut Context) {
    match fault.of_skeleton() {
        Ok(fault) => context.faults.add(fault, context.now()),
        Err(trigger) => device.triggers.order(trigger),
    }
}

/// Ends every fault, the skeleton's and the router's.
pub(crate) fn clear_faults(device: &mut Device, context: &mut Context) {
    context.faults.clear();
    device.triggers.clear();
}

fn take_effect(device: &mut Device, effect: Effect, context: &mut Context) {
    match effect {
        Effect::DropAnswer => {}
        Effect::Cut { for_ms } => order(device, Fault::Cut { for_ms }, context),
        Effect::Hang { for_ms } => order(device, Fault::Hang { for_ms }, context),
        Effect::Reboot => device.restart(Restart::Reboot),
    }
}
