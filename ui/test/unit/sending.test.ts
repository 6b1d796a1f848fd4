import { expect, test } from "vitest";
import { ConnectionLostError } from "../../src/client/client";
import { whyNotSent } from "../../src/parts/sending";

test("what the server refused was not sent, and why is told", () => {
  expect(whyNotSent(new Error("The room is full."))).toBe("Not sent. The room is full.");
});

test("what may have arrived is not said to be unsent", () => {
  const lost = new ConnectionLostError("The connection broke (1006). mail.reply may or may not have been…", true);
  expect(whyNotSent(lost)).toBe("The connection was lost before the server answered. Try again: it is not sent twice.");
  expect(whyNotSent(new ConnectionLostError("It broke.", false))).toBe("Not sent: there is no connection. Try again.");
});
