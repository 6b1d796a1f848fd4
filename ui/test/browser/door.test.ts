import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInBrowser, Stage } from "./stage";

describeInBrowser("the door", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open();
  });
  afterAll(() => stage.close());

  test("the address with the token leads to the session, and does not keep the token", async () => {
    const { page, server } = stage;
    await page.waitForURL(`${server.url}/s/default`);
    await page.getByRole("status").getByText("live").waitFor();
    expect(page.url()).not.toContain("token");
  });

  test("without a token a page says how to get in, and the token opens it", async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.goto(`${stage.server.url}/s/default`);
    expect(await page.getByRole("alert").textContent()).toContain("A token is needed.");
    await page.getByLabel("Token").fill(stage.server.token);
    await page.getByRole("button", { name: "Open the page" }).click();
    await page.getByRole("navigation", { name: "Places" }).waitFor();
    await context.close();
  });

  test("whoever gives the token comes to the place that the address named, with all that was chosen there", async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.goto(`${stage.server.url}/s/default/log?q=a%26b&agent=x%20y`);
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Open the page" }).click();
    expect(await page.getByRole("alert").textContent()).toContain("The token is wrong.");
    await page.getByLabel("Token").fill(stage.server.token);
    await page.getByRole("button", { name: "Open the page" }).click();
    await page.getByRole("heading", { name: "Log" }).waitFor();
    const { pathname, searchParams } = new URL(page.url());
    expect([pathname, ...searchParams]).toEqual(["/s/default/log", ["q", "a&b"], ["agent", "x y"]]);
    await context.close();
  });

  test("a link from another site leads whoever was let in before to its place", async () => {
    const page = await stage.context.newPage();
    const place = `${stage.server.url}/s/default/locks?q=1`;
    await page.goto(`data:text/html,<a href="${place}">there</a>`);
    await page.getByRole("link", { name: "there" }).click();
    await page.getByRole("link", { name: "continue without it" }).click();
    await page.getByRole("heading", { name: "Locks" }).waitFor();
    expect(page.url()).toBe(place);
    await page.close();
  });

  test("nothing was asked of anybody else, and nothing went wrong", () => {
    expect(stage.strangers).toEqual([]);
    expect(stage.complaints).toEqual([]);
  });

  test("a page whose token has become wrong takes the new one, and stays where it is", async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.goto(`${stage.server.url}/s/default/events?token=${stage.server.token}`);
    await page.getByRole("heading", { name: "Events" }).waitFor();
    await context.clearCookies();
    await stage.server.kill();
    await stage.server.start();
    await page.getByLabel("Token").fill(stage.server.token);
    await page.getByRole("button", { name: "Open the page" }).click();
    await page.getByRole("heading", { name: "Events" }).waitFor();
    expect(page.url()).toBe(`${stage.server.url}/s/default/events`);
    await context.close();
  });
});
