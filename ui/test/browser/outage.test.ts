import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { describeInBrowser, setStage } from "./stage";
import { lastSeqOf, worldOf } from "./watching";

/** The model of this file: before the power cut it stops in the middle of its answer, after it it does not. */
const RULES = join(tmpdir(), `whisperer-rules-${process.pid}.json`);
const ANSWER = "The tide comes in, and the tide goes out.";
const HALF = { text: ANSWER.slice(0, 20), chunk_characters: 5, failure: "stall" };
const WHOLE = { text: ANSWER, chunk_characters: 5, chunk_seconds: 0.02 };
const play = (rule: object) => writeFile(RULES, JSON.stringify({ rules: [{ prompt_match: "tide", ...rule }] }));

describeInBrowser("a power cut of the server", async () => {
  await play(HALF);
  const stage = setStage({ rules: RULES });
  afterAll(() => rm(RULES));
  const badge = (text: string) => stage().page.locator(".connection").getByText(text).waitFor();
  const messages = () => stage().page.getByRole("log", { name: "Messages" });

  async function cut() {
    await stage().server.kill();
    await badge("not connected");
  }

  async function startAgain() {
    await stage().server.start();
    await expect.poll(() => stage().client.state).toBe("open");
  }

  async function back() {
    await startAgain();
    await badge("live");
  }

  /** Both pages know the same, each up to the end of the log. */
  async function isAsFreshlyLoaded() {
    const fresh = await stage().another();
    const { lastSeq } = await stage().call<{ lastSeq: number }>("events.list", { limit: 1 });
    await expect.poll(() => lastSeqOf(fresh)).toBe(lastSeq);
    await expect.poll(() => lastSeqOf(stage().page)).toBe(lastSeq);
    expect(await worldOf(stage().page)).toEqual(await worldOf(fresh));
    await fresh.close();
  }

  test("the page says so, keeps what it shows, and lets nobody act", async () => {
    await stage().cast("alice", "bob");
    await stage().seeState("bob", "idle");
    await cut();
    await stage().seeState("bob", "idle");
    expect(await stage().page.getByRole("button", { name: "New agent" }).isDisabled()).toBe(true);
  });

  test("it connects again by itself, with nothing missing and nothing twice", async () => {
    await back();
    expect(await stage().page.getByRole("button", { name: "New agent" }).isEnabled()).toBe(true);
    expect(await stage().page.locator("[data-agent]").count()).toBe(2);
    await isAsFreshlyLoaded();
    await stage().call("async.pauseAgent", { agentId: "bob" });
    await stage().seeState("bob", "paused");
  });

  test("an answer that was being written is written anew, and stands there once", async () => {
    const { page } = stage();
    const { roomId } = await stage().call<{ roomId: string }>("room.openChat", { agentId: "alice" });
    await page.goto(stage().address("chats", roomId));
    await page.getByRole("textbox", { name: "Message" }).fill("Tell me of the tide");
    await page.keyboard.press("Enter");
    await messages().getByText(HALF.text).waitFor();
    await cut();
    await play(WHOLE);
    await back();
    await messages().locator("[aria-busy=false]").getByText(ANSWER, { exact: true }).waitFor();
    expect(await messages().locator(".chat-message").count()).toBe(2);
    expect(await messages().getByText(HALF.text).count()).toBe(1);
    await isAsFreshlyLoaded();
  });

  test("what was done while the page was away is there", async () => {
    const { page } = stage();
    await stage().choose("Fleet");
    await stage().seeState("bob", "paused");
    await page.context().setOffline(true);
    await cut();
    await startAgain();
    await stage().call("async.resumeAgent", { agentId: "bob" });
    await stage().cast("carol");
    await page.context().setOffline(false);
    await stage().seeState("carol", "idle");
    await stage().seeState("bob", "idle");
    await isAsFreshlyLoaded();
  });

  test("nothing was asked of anybody else", () => {
    expect(stage().strangers).toEqual([]);
  });
});
