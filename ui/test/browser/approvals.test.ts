import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

describeInBrowser("approvals", () => {
  const stage = setStage();

  /** Let so many calls wait, each of an agent of its own. */
  async function ask(...agentIds: string[]): Promise<void> {
    for (const agentId of agentIds) {
      const config = { name: agentId, tools: ["write_file"], approve: ["write_file"] };
      await stage().call("async.createAgent", { agentId, config });
      await stage().call("async.sendTask", { agentId, prompt: `write down: pay ${agentId}` });
      await expect.poll(async () => (await decisions())[agentId]).toBe("pending");
    }
  }

  async function decisions(): Promise<Record<string, string>> {
    type Listed = { approvals: { agentId: string; state: string }[] };
    const { approvals } = await stage().call<Listed>("approval.list", { approvalState: null });
    return Object.fromEntries(approvals.map(({ agentId, state }) => [agentId, state]));
  }

  const card = (agentId: string) => stage().page.getByRole("article", { name: `write_file of ${agentId}` });

  async function placeOf(agentId: string): Promise<{ x: number; y: number }> {
    const button = card(agentId).getByRole("button", { name: "Approve" });
    await card(agentId).locator(".approvals-call").waitFor(); // what is asked about comes a moment later
    await button.click({ trial: true }); // it takes clicks
    const { x, y, width, height } = (await button.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    return { x: x + width / 2, y: y + height / 2 };
  }

  /** The button that a click there would press. */
  const under = ({ x, y }: { x: number; y: number }) =>
    stage().page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.closest("button")?.textContent ?? null, [
      x,
      y,
    ] as const);

  test("many clicks at one place approve one call", async () => {
    await ask("anna", "bert", "carl");
    await stage().go("approvals");
    const { page } = stage();
    const { x, y } = await placeOf("anna");
    await page.mouse.dblclick(x, y);
    await card("anna").getByText("approved").waitFor();
    for (let index = 0; index < 5; index++) await page.mouse.click(x, y);
    expect(await card("anna").getByText("approved").isVisible()).toBe(true);
    await expect.poll(decisions).toEqual({ anna: "approved", bert: "pending", carl: "pending" });
  });

  test("Enter in the reason decides nothing", async () => {
    const { page } = stage();
    await card("bert").focus();
    await page.keyboard.press("r");
    await page.keyboard.type("Too much");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+Enter");
    expect(await decisions()).toEqual({ anna: "approved", bert: "pending", carl: "pending" });
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await card("bert").getByText("refused").waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("a");
    expect(await decisions()).toEqual({ anna: "approved", bert: "refused", carl: "pending" });
  });

  test("a card that moves to where another one was takes no click at first", async () => {
    await ask("dora");
    const { page } = stage();
    await stage().go("approvals"); // those that were decided are not among them any more
    for (const agentId of ["carl", "dora"]) await card(agentId).locator(".approvals-call").waitFor();
    await page.mouse.move(0, 0);
    const pressed = page.evaluate(
      () =>
        new Promise<string | null>((resolve) => {
          const list = document.querySelector("ul.cards") as HTMLElement;
          new MutationObserver(() => {
            if (list.children.length > 1) return;
            const approve = [...list.querySelectorAll("button")].find((each) => each.textContent === "Approve");
            const { x, y, width, height } = (approve as HTMLElement).getBoundingClientRect();
            const under = document.elementFromPoint(x + width / 2, y + height / 2);
            resolve(under?.closest("button")?.textContent ?? null);
          }).observe(list, { childList: true });
        }),
    );
    const { approvals } = await stage().call<{ approvals: { agentId: string; approvalId: string }[] }>("approval.list");
    const { approvalId = "" } = approvals.find(({ agentId }) => agentId === "carl") ?? {};
    await stage().call("approval.refuse", { approvalId });
    expect(await pressed).toBeNull();
    const { x, y } = await placeOf("dora");
    await expect.poll(() => under({ x, y })).toBe("Approve");
    await page.mouse.click(x, y);
    await card("dora").getByText("approved").waitFor();
  });

  testThatAllWentWell(stage);
});
