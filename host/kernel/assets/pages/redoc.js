// Starts Redoc on this server's own document, with the fonts that the reader's system has.
const system = "system-ui, sans-serif";
Redoc.init(
  "/api/v1/openapi.json",
  { theme: { typography: { fontFamily: system, headings: { fontFamily: system } } } },
  document.getElementById("redoc"),
);
