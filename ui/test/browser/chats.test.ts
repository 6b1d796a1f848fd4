import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";
import { seenTexts, watchTexts } from "./watching";

describeInBrowser("chats", () => {
  const stage = setStage();
  const dialog = () => stage().page.getByRole("dialog");
  const messages = () => stage().page.getByRole("log", { name: "Messages" });
  const field = () => stage().page.getByRole("textbox", { name: "Message" });
  const chat = (name: string) => stage().page.getByRole("list", { name: "Chats" }).getByRole("link", { name });

  async function say(text: string) {
    await field().fill(text);
    await field().press("Enter");
  }

  test("a chat with one agent is opened, and its answer grows while it is written", async () => {
    await stage().cast("alice", "bob", "carol");
    await stage().choose("Chats");
    await stage().page.getByRole("button", { name: "New chat" }).click();
    await dialog().getByRole("radio", { name: "alice" }).check();
    await dialog().getByRole("button", { name: "Open the chat" }).click();
    await stage().page.getByText("Nothing has been said here").waitFor();
    await watchTexts(stage().page, ".chat-message:not(.chat-message-user) .md");
    await say("slowly: the tide");
    await messages().getByText("Slowly, piece by piece: the tide. The end.").waitFor();
    expect(await field().inputValue()).toBe("");
    const seen = await seenTexts(stage().page);
    const whole = "Slowly, piece by piece: the tide. The end.";
    const grown = seen.filter((text) => text !== "" && whole.startsWith(text) && text !== whole);
    expect(grown.length).toBeGreaterThan(2);
    expect([...grown].sort((one, other) => one.length - other.length)).toEqual(grown);
    expect(seen.filter((text) => !whole.startsWith(text))).toEqual([]);
  });

  test("only what is final is shown; commentary and analysis are unfolded", async () => {
    expect(await messages().textContent()).not.toContain("Thinking about it");
    expect(await messages().textContent()).not.toContain("On it.");
    await messages().getByText("Commentary and analysis").click();
    await messages().getByText("On it.").waitFor();
    await messages().getByText("Thinking about it.").waitFor();
  });

  test("what was said is there again after a reload, once", async () => {
    await stage().page.reload();
    await messages().getByText("Slowly, piece by piece: the tide. The end.").waitFor();
    expect(await messages().locator(".chat-message").count()).toBe(2);
  });

  test("an image and a file go along; the image is shown, the file is saved and not opened", async () => {
    const { page } = stage();
    const image = await page.screenshot({ clip: { x: 0, y: 0, width: 40, height: 30 } });
    const text = Buffer.from("<script>alert(1)</script> Low tide at six.");
    await page.getByLabel("Images and files").setInputFiles([
      { name: "chart.png", mimeType: "image/png", buffer: image },
      { name: "tide.html", mimeType: "text/html", buffer: text },
    ]);
    await page.getByRole("list", { name: "Goes along" }).getByText("chart.png").waitFor();
    await say("tide table, as in these");
    const shown = messages().getByRole("img", { name: "chart.png" });
    await shown.waitFor();
    const width = () => shown.evaluate((each) => (each as HTMLImageElement).naturalWidth);
    await expect.poll(width).toBeGreaterThanOrEqual(40);
    const saving = page.waitForEvent("download");
    await messages()
      .getByRole("button", { name: /tide.html/ })
      .click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe("tide.html");
    await page.reload();
    await expect.poll(width).toBeGreaterThanOrEqual(40);
    await messages().getByText("Low tide is at six").waitFor();
  });

  test("a file that is too large is told, and the message stays", async () => {
    const { page } = stage();
    const large = { name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc((5 << 20) + 1) };
    await page.getByLabel("Images and files").setInputFiles(large);
    await page.getByRole("list", { name: "Goes along" }).getByText("large.bin").waitFor();
    await say("tide table again");
    await page.getByRole("alert").getByText("max_attachment_bytes").waitFor();
    expect(await field().inputValue()).toBe("tide table again");
    await page.getByRole("button", { name: "Leave large.bin out" }).click();
    await field().fill("");
  });

  test("a group is made, and its agents answer at once, side by side", async () => {
    const { page } = stage();
    await page.getByRole("button", { name: "New group" }).click();
    await dialog().getByLabel("Title").fill("The harbour");
    await dialog().getByRole("checkbox", { name: "bob" }).check();
    await dialog().getByRole("checkbox", { name: "carol" }).check();
    await dialog().getByRole("button", { name: "Create the group" }).click();
    await page.getByRole("heading", { name: "The harbour" }).waitFor();
    const letGo = await stage().hold("low-tide");
    await say("@all wait until low-tide");
    const open = page.locator(".chat-answers .chat-message[aria-busy=true]");
    await expect.poll(() => open.count()).toBe(2);
    await expect.poll(() => open.getByText("waits for the lock low-tide, with user").count()).toBe(2);
    const [bob, carol] = await Promise.all([open.nth(0).boundingBox(), open.nth(1).boundingBox()]);
    expect(bob?.y).toBe(carol?.y);
    expect(bob?.x).toBeLessThan(carol?.x ?? 0);
    await letGo();
    await expect.poll(() => messages().getByText("I have seen low-tide.").count()).toBe(2);
    await expect.poll(() => open.count()).toBe(0);
  });

  test("@ offers the members, and the keyboard chooses one; only that one is asked", async () => {
    const { page } = stage();
    await field().focus();
    await page.keyboard.type("Tell me, @");
    const offers = page.getByRole("listbox", { name: "Members to mention" });
    await expect.poll(() => offers.getByRole("option").count()).toBe(3);
    await page.keyboard.press("ArrowDown");
    expect(await offers.getByRole("option", { selected: true }).textContent()).toContain("@carol");
    await page.keyboard.press("Tab");
    expect(await field().inputValue()).toBe("Tell me, @carol ");
    await page.keyboard.type("how are you?");
    await page.keyboard.press("Enter");
    await messages().getByText("how are you?").first().waitFor();
    const last = page.locator(".chat-answers").last();
    await last.locator(".chat-message[aria-busy=false]").getByText("Hello, I am here.").waitFor();
    expect(await last.locator(".chat-message").count()).toBe(1);
    expect(await last.textContent()).toContain("carol");
    expect(await messages().locator(".chat-message-user").last().textContent()).toContain("@carol how are you?");
  });

  test("a room that is not looked at gets an unread mark, until it is", async () => {
    const { page } = stage();
    const rooms = await stage().call<{ rooms: { roomId: string; title: string; kind: string }[] }>("room.list");
    const direct = rooms.rooms.find(({ kind }) => kind === "direct");
    await stage().call("room.post", { roomId: direct?.roomId, text: "Are you there?" });
    await chat("alice").getByText("1 unread").waitFor();
    const place = page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Chats" });
    await expect.poll(() => place.textContent()).toBe("Chats1");
    await chat("alice").click();
    await messages().getByText("Are you there?").first().waitFor();
    await chat("alice").getByText("unread").waitFor({ state: "detached" });
    await expect.poll(() => place.textContent()).toBe("Chats");
  });

  test("markdown is rendered: bold, code and lists", async () => {
    await say("echo: **strong** and `code`\n\n- one\n- two");
    const answer = messages().locator(".chat-message").last();
    await answer.locator("strong", { hasText: "strong" }).waitFor();
    await answer.locator("code", { hasText: "code" }).waitFor();
    expect(await answer.locator("li").count()).toBe(2);
  });

  test("mail of an agent is read in the inbox and answered, and the agent gets the answer", async () => {
    const { page } = stage();
    const inbox = page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Inbox" });
    const mails = page.getByRole("list", { name: "Mails" });
    const mail = page.getByRole("region", { name: "Mail", exact: true });
    await stage().call("async.sendTask", { agentId: "bob", prompt: "mail me" });
    await inbox.locator(".nav-badge").getByText("1").waitFor();
    await stage().choose("Inbox");
    await mails.getByText("News for you").click();
    await mail.locator("strong", { hasText: "All" }).waitFor();
    await inbox.locator(".nav-badge").waitFor({ state: "detached" });
    await mail.getByRole("textbox").fill("Thank you. Please mail me again.");
    await mail.getByRole("button", { name: "Reply" }).click();
    await mail.getByText("Thank you. Please mail me again.").waitFor();
    await expect.poll(() => mails.getByText("News for you").count()).toBe(2);
    await inbox.locator(".nav-badge").waitFor({ state: "detached" }); // it is shown with the thread, and so it is read
    await mail.getByRole("button", { name: "Archive" }).click();
    await expect.poll(() => mails.getByText("News for you").count()).toBe(1);
  });

  testThatAllWentWell(stage);
});
