// Takes the token from behind the '#', which no server sees, and out of the address bar and its history.
const token = new URLSearchParams(location.hash.slice(1)).get("token");
history.replaceState(null, "", location.pathname);

const form = document.getElementById("form");
const status = document.getElementById("status");
const faults = document.getElementById("faults");

function say(text, list = []) {
  status.textContent = text;
  faults.replaceChildren(...list.map((fault) => {
    const item = document.createElement("li");
    item.textContent = fault;
    return item;
  }));
}

async function send(password) {
  const answer = await fetch("api/v1/auth/password/reset", {
    method: "POST",
    headers: { "content-type": "application/json" },
    credentials: "omit",
    body: JSON.stringify({ token, new_password: password }),
  });
  if (answer.ok) {
    form.remove();
    return say("Your password is set. Log in with it; all other sessions and API keys have ended.");
  }
  const body = await answer.json().catch(() => ({}));
  const details = (body.error?.details ?? []).map((detail) => detail.message);
  if (answer.status === 422) return say("This password cannot be used:", details);
  if (answer.status === 400) form.remove();
  say(body.error?.message ?? body.detail ?? "It did not work. Try again.");
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const password = document.getElementById("password").value;
  if (password !== document.getElementById("again").value) return say("The two passwords differ.");
  const button = form.querySelector("button");
  button.disabled = true;
  await send(password).catch(() => say("The server cannot be reached. Try again."));
  button.disabled = false;
});

if (token) {
  form.hidden = false;
  say("Choose a new password for your account.");
} else {
  say("Open this page by the link in the mail: the link is not complete.");
}
