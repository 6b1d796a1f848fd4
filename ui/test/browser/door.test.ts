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

  test("nothing was asked of anybody else, and nothing went wrong", () => {
    expect(stage.strangers).toEqual([]);
    expect(stage.complaints).toEqual([]);
  });
});
