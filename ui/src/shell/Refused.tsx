import { usePage } from "../state/page";

/** Whoever has no token is told how to get one. */
export function Refused() {
  const problem = usePage((page) => page.problem);
  return (
    <main className="gate">
      <h1>AI Whisperer</h1>
      <p role="alert">{problem?.message ?? "The server does not let this page in."}</p>
      <p>
        Open the address that <code>whisperer serve</code> printed when it started, with <code>?token=…</code> at its
        end. <code>whisperer page</code> prints it again.
      </p>
      <button type="button" onClick={() => location.reload()}>
        Try again
      </button>
    </main>
  );
}
