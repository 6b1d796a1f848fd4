import { expect, test } from "vitest";
import { XSS } from "../xss";
import { AGENT_TABS, PLACES } from "./places";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

/** Without what no server lets in: halves of characters, and zeros. */
const BAD = XSS.filter((text) => !/[\p{Cs}\0]/u.test(text));
const SHORT = BAD.filter((text) => text.length < 90 && !text.includes("\n"));
/** Those that may be an id, or the name of an event. */
const IDS = SHORT.filter((text) => !/[~\p{C}]/u.test(text));
describeInBrowser("texts of strangers", () => {
  const stage = setStage();
  const dialogs: string[] = [];
  let roomId = "";
  let taskId = "";

  const bad = (number: number) => SHORT[number % SHORT.length] as string;

  test("whatever a session can be told is told badly", async () => {
    const { page } = stage();
    page.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    for (let number = 0; number < 12; number++) {
      const description = SHORT.slice(number * 8, number * 8 + 8).join(" ");
      const name = `${IDS[number]} ${number}`;
      await stage().call("async.createAgent", { agentId: `a${number}`, config: { name, description } });
    }
    const give = (agentId: string, prompt: string) =>
      stage().call<{ taskId: string }>("async.sendTask", { agentId, prompt });
    ({ taskId } = await give("a1", `echo: ${BAD.join("\n\n")}`));
    await give("a2", "who is there");
    await give("a3", `post: ${bad(5)} | ${BAD.slice(50).join(" ")}`);
    await stage().call("async.createAgent", {
      agentId: "writer",
      config: { tools: ["write_file"], approve: ["write_file"], prompt: BAD.join("\n") },
    });
    await give("writer", `write down: ${bad(9)}`);
    await give("a4", `go wrong ${bad(11)}`);
    await stage().call("mail.send", { to: "a5", subject: bad(12), body: BAD.join("\n\n") });
    await stage().call("async.broadcastEvent", { event: "storm", data: { [bad(13)]: BAD } });
    await stage().call("async.broadcastEvent", { event: IDS[20], eventId: IDS[21], data: bad(13) });
    const schedule = { agentId: "a6", prompt: bad(14), intervalSeconds: 3600 };
    await stage().call("schedule.create", { ...schedule, scheduleId: IDS[22] });
    await stage().call("schedule.create", { event: IDS[23], intervalSeconds: 3600 });
    await stage().call("async.sendTask", { agentId: "a6", prompt: "Hello", taskId: IDS[24], threadId: IDS[25] });
    await stage().call("mail.send", { to: "a6", subject: bad(12), body: bad(13), mailId: IDS[26] });
    await stage().call("session.create", { sessionId: IDS[27], title: bad(19) });
    await stage().call("lock.acquire", { name: bad(15), ttlSeconds: 3600 });
    await stage().call("async.pauseAgent", { agentId: "a7", reason: bad(16) });
    await stage().call("async.sleepAgent", { agentId: "a8", wakeEvents: [IDS[28]], reason: bad(17) });
    await stage().call("room.create", { members: ["a7"], title: bad(1), roomId: IDS[29] });
    await stage().call("async.stopAgent", { agentId: "a11", reason: bad(18) });
    ({ roomId } = await stage().call<{ roomId: string }>("room.openChat", { agentId: "a10" }));
    for (const text of BAD) await stage().call("room.post", { roomId, text: `echo: ${text}` });
    await stage().call("task.wait", { taskId });
  });

  /** There is nothing in the page that somebody else has put there: only text. */
  async function isPlain(where: string) {
    const found = await stage().page.evaluate(strangeElements);
    expect(found, where).toEqual([]);
    expect(dialogs, where).toEqual([]);
    expect(await stage().page.getByRole("navigation", { name: "Places" }).isVisible(), where).toBe(true);
  }

  test("every view shows it as text, and is alive", async () => {
    const { page } = stage();
    const named = [
      ["events", IDS[21], "Events"],
      ["schedules", IDS[22], "Schedules"],
      ["chats", IDS[29], "Chats"],
    ].map(([view, id = "", title]) => [`${view}/${encodeURIComponent(id)}`, title]);
    const others = [
      ["graph?as=table", "Graph"],
      ["graph?node=a7", "Graph"],
      ["log?entry=3", "Log"],
    ];
    for (const [address = "", title = ""] of [...PLACES, ...named, ...others]) {
      await stage().turnTo(address);
      await page.locator("main h1", { hasText: title }).waitFor();
      await stage().isLoaded();
      await isPlain(address);
    }
  });

  test("so does every tab of an agent, with its task and its mail open", async () => {
    const { page } = stage();
    for (const [tab, title] of AGENT_TABS) {
      await stage().turnTo("agents", `a1?tab=${tab}&task=${taskId}`);
      await page.getByRole("region", { name: title, exact: true }).waitFor();
      await stage().isLoaded();
      await isPlain(tab);
    }
    await stage().turnTo("agents", "a5?tab=mail");
    await page.locator(".agent-row").first().click();
    await isPlain("an opened mail");
  });

  test("so do the inbox with a mail open, and an event with its data", async () => {
    const { page } = stage();
    await stage().turnTo("inbox");
    await page.getByRole("list", { name: "Mails" }).getByRole("link").first().click();
    await page.getByRole("button", { name: "Reply" }).waitFor();
    await isPlain("an opened mail");
    await stage().turnTo("events");
    await page.locator("summary", { hasText: "storm" }).click();
    await page.locator("pre").getByText("onerror").waitFor();
    await isPlain("an opened event");
  });

  test("so does a chat, from its last message to its first", async () => {
    const { page } = stage();
    await stage().turnTo("chats", roomId);
    const log = page.getByRole("log", { name: "Messages" });
    await log.locator(`[data-number="${2 * BAD.length}"]`).waitFor(); // each has its answer
    const seen = new Set<string>();
    await log.focus();
    while (!seen.has("1")) {
      const numbers = await log
        .locator("[data-number]")
        .evaluateAll((all) => all.map((each) => each.getAttribute("data-number") ?? ""));
      for (const number of numbers) seen.add(number);
      await isPlain(`the messages ${numbers[0]} to ${numbers.at(-1)}`);
      await log.evaluate((box) => box.scrollBy(0, -box.clientHeight / 2));
    }
    expect(seen.size).toBe(2 * BAD.length);
  });

  test("the palette and the past show it as text too", async () => {
    const { page } = stage();
    await stage().turnTo();
    await stage().row("a1").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("a1");
    await page.getByRole("dialog").getByRole("option").first().waitFor();
    await isPlain("the palette");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Travel in time" }).click();
    await page.getByRole("region", { name: "Time travel" }).getByLabel("Moment").waitFor();
    await isPlain("the past");
    await page.getByRole("region", { name: "Time travel" }).getByRole("button", { name: "Back to live" }).click();
  });

  test("a line of a megabyte is cut with a button, and the page goes on", async () => {
    const { page } = stage();
    const direct = await stage().call<{ roomId: string }>("room.openChat", { agentId: "a9" });
    await stage().call("room.post", { roomId: direct.roomId, text: `four times: ${"x".repeat(250_000)}` });
    await stage().turnTo("chats", direct.roomId);
    const log = page.getByRole("log", { name: "Messages" });
    await log.locator("[data-number='2']").waitFor();
    expect((await log.textContent())?.length).toBeLessThan(500_000);
    await log.getByRole("button").first().waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("Still there?");
    await page.keyboard.press("Enter");
    await log.getByText("Hello, I am here.").waitFor();
    await isPlain("after a megabyte");
  });

  test("marks that turn the direction of text do not turn the page around", async () => {
    const { page } = stage();
    const { roomId: turned } = await stage().call<{ roomId: string }>("room.openChat", { agentId: "a1" });
    await stage().call("room.post", { roomId: turned, text: "echo: abc\u202eexe.txt" });
    await stage().turnTo("chats", turned);
    const answer = page.getByRole("log", { name: "Messages" }).locator("[data-number='2']");
    await answer.getByText("exe.txt").waitFor();
    expect(await answer.textContent()).not.toContain("\u202e");
    await isPlain("a turned answer");
  });

  testThatAllWentWell(stage);
});

/** Elements of the page that only a stranger's text can have made. */
function strangeElements(): string[] {
  const made =
    "iframe, object, embed, applet, form[action], img, video, audio, link[href^='http'], base, meta[http-equiv]";
  const strange = [...document.querySelectorAll(`#root :is(${made}, script, style, svg script, xss, marquee)`)];
  for (const element of document.querySelectorAll("#root *")) {
    const isHandled = element.getAttributeNames().some((name) => name.startsWith("on"));
    if (isHandled) strange.push(element);
  }
  for (const link of document.querySelectorAll<HTMLAnchorElement>("#root a[href]")) {
    const { protocol, origin } = new URL(link.href, location.href);
    const isSafe = origin === location.origin || ["http:", "https:", "mailto:"].includes(protocol);
    const isLeaving = origin !== location.origin;
    if (!isSafe || (isLeaving && !/noopener/.test(link.rel))) strange.push(link);
  }
  return strange.map((element) => element.outerHTML.slice(0, 200));
}
