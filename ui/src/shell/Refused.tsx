import { type FormEvent, useState } from "react";
import { usePage } from "../state/page";

/** Whoever has no token, or an old one, is told how to get one. To give it leads to the place that is shown. */
export function Refused() {
  const problem = usePage((page) => page.problem);
  const [token, setToken] = useState("");
  const enter = (event: FormEvent) => {
    event.preventDefault();
    const address = new URL(location.href);
    address.searchParams.set("token", token.trim());
    location.assign(address);
  };
  return (
    <main className="gate">
      <h1>AI Whisperer</h1>
      <p role="alert">{problem?.message ?? "The server does not let this page in."}</p>
      <p>
        The address that <code>whisperer serve</code> printed when it started lets you in: it ends in{" "}
        <code>?token=…</code>. <code>whisperer page</code> prints it again. Or give the token here, and this place
        opens:
      </p>
      <form className="gate-form" onSubmit={enter}>
        <label>
          Token{" "}
          <input
            type="password"
            autoComplete="off"
            required
            value={token}
            onChange={({ target }) => setToken(target.value)}
          />
        </label>
        <button type="submit" className="primary">
          Open the page
        </button>
      </form>
    </main>
  );
}
