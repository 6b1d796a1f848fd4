import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./shell/App";
import { usePage } from "./state/page";
import { server } from "./state/server";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/steer.css";
import "./styles/palette.css";

const address = new URL(location.href);
if (address.searchParams.has("token")) {
  address.searchParams.delete("token"); // the cookie has it from here on; the address may be shared
  history.replaceState(null, "", address);
}

// For the curious, and for tests: `whisperer.page()` in the console is all that the page knows.
Object.assign(window, { whisperer: { page: usePage.getState } });

server();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
