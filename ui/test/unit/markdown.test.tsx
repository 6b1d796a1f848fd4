import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Markdown } from "../../src/parts/Markdown";
import { pieces, rendered } from "../../src/parts/markdown/limits";
import { XSS } from "../xss";

beforeAll(() => import("../../src/parts/markdown/Rendered"));
afterEach(cleanup);

async function shown(text: string, mentions: string[] = []): Promise<HTMLElement> {
  const { container } = render(<Markdown text={text} mentions={mentions} />);
  await vi.waitFor(() => expect(container.querySelector(".md > .md-plain:not(.md-raw)")).toBeNull());
  return container;
}

const FORBIDDEN = "script,iframe,img,style,svg,object,embed,form,input,link,meta,base,video,audio,dialog,math,template";

describe("hostile text", () => {
  test.each(XSS)("is only shown: %j", async (text) => {
    const asked = vi.spyOn(globalThis, "fetch");
    const container = await shown(text);
    expect(container.querySelector(FORBIDDEN)).toBeNull();
    expect(container.textContent?.trim()).not.toBe("");
    for (const element of container.querySelectorAll("*")) {
      for (const { name } of element.attributes) expect(name).not.toMatch(/^on|^id$|^name$|^style$|^src/i);
      const href = element.getAttribute("href");
      if (href !== null) expect(href).toMatch(/^(?:https?:\/\/|mailto:)/);
    }
    expect(asked).not.toHaveBeenCalled();
  });

  test("which is more than sixty ways to try it", () => expect(new Set(XSS).size).toBeGreaterThan(60));
});

describe("links", () => {
  test("open elsewhere, tell nobody where from, and say where they lead", async () => {
    const link = (await shown("[the page](https://a.example/x)")).querySelector("a");
    expect(link?.outerHTML).toBe(
      '<a href="https://a.example/x" title="https://a.example/x" target="_blank" rel="noopener noreferrer">the page</a>',
    );
  });

  test("that look like another address say which one it is", async () => {
    expect((await shown("[https://bank.example](https://evil.example/)")).textContent).toContain("(evil.example)");
    cleanup();
    expect((await shown("https://bank.example/x")).textContent).toBe("https://bank.example/x");
  });

  test("to a place in the page itself are words", async () => {
    expect((await shown("[up](#content)")).innerHTML).not.toContain("<a");
  });

  test("stand for pictures, which are not loaded", async () => {
    const container = await shown("![a chart](https://a.example/c.png)");
    expect(container.querySelector("a")?.textContent).toBe("Picture: a chart");
  });
});

describe("names and ids", () => {
  test.each([
    "step~3 and step~4",
    "task~a~b",
    "~tmp~ and ~x",
    "ann_1_2, snake_case_name",
    "__init__ and __init__.py",
    "_my_tmp_ and _v2_",
    "2*3*4 or a*b*c",
    "task*1* of 2",
    "src/**/*.ts and test/**/*.ts",
    "f(*args, **kwargs)",
    "<agent-1> wrote to <agent-2>",
    "C:\\new\\table",
  ])("are shown as they are written: %s", async (text) => {
    const container = await shown(text);
    expect(container.querySelector("em,strong,del")).toBeNull();
    expect(container.textContent?.trim()).toBe(text);
  });

  test("do not keep what is meant from being emphasized or struck out", async () => {
    const container = await shown("~~old~~ **new** *a* _b_ __two words__ (*c*), **d**, 中**文**字");
    expect([...container.querySelectorAll("del,strong,em")].map((each) => each.outerHTML)).toEqual([
      ...["<del>old</del>", "<strong>new</strong>", "<em>a</em>", "<em>b</em>", "<strong>two words</strong>"],
      ...["<em>c</em>", "<strong>d</strong>", "<strong>文</strong>"],
    ]);
  });
});

describe("code without a fence", () => {
  test.each([
    "def count(text):\n    if text:\n        return 1\n    return 0",
    "if a:\n\tb()",
    "a\n  **b**\n    `c` d\n  e",
  ])("keeps its indentation: %j", async (text) => {
    const plain = text.replaceAll(/[*`]/g, "").replace("\t", "    ");
    expect((await shown(text)).querySelector("p")?.textContent).toBe(plain);
  });

  test("keeps it in quotes, in lists and after breaks too", async () => {
    const lines = async (text: string) => {
      const found = (await shown(text)).querySelector("p")?.innerHTML;
      cleanup();
      return found;
    };
    expect(await lines("> a\n>   b\nc")).toBe("a\n  b\nc");
    expect(await lines("- a\n    b\n\n- c")).toBe("a\n  b");
    expect(await lines("  a  \n    b\\\n      c")).toBe("a<br>  b<br>    c");
    expect(await lines("a &amp;\n  b &#10; c")).toContain("a &amp;\n");
  });
});

describe("ordinary text", () => {
  test("has lists, tables, tasks, quotes and code", async () => {
    const container = await shown(
      "# Plan\n\n1. one\n\n- [x] done\n\n| a |\n|--:|\n| 1 |\n\n> said\n\n```py\nprint(1)\n```",
    );
    expect(container.querySelector("h4")?.textContent).toBe("Plan");
    expect(container.textContent).toContain("☑ done");
    expect(container.querySelector("td")?.style.textAlign).toBe("right");
    expect(container.querySelector("pre")?.textContent).toBe("print(1)");
  });

  test("shows HTML as it was written", async () => {
    expect((await shown("a <b>bold</b> word")).textContent).toBe("a <b>bold</b> word");
  });

  test("points out the members that it mentions, but not in code", async () => {
    const container = await shown("@writer, ask @Test-Runner and @all; not `@writer` or x@writer or @writers", [
      "writer",
      "test runner",
      "all",
    ]);
    expect([...container.querySelectorAll("mark")].map((mark) => mark.textContent)).toEqual([
      "@writer",
      "@Test-Runner",
      "@all",
    ]);
  });

  test("has its code copied by a button", async () => {
    const write = vi.fn(() => Promise.resolve());
    vi.stubGlobal("navigator", { clipboard: { writeText: write } });
    const container = await shown("```\na < b\n```");
    fireEvent.click(screen.getByRole("button", { name: "Copy" }));
    await screen.findByRole("button", { name: "Copied" });
    expect(write).toHaveBeenCalledWith("a < b");
    expect(container.querySelector("pre")?.tabIndex).toBe(0);
    vi.unstubAllGlobals();
  });

  test("shows the signs that turn the direction of writing", async () => {
    const container = await shown("file \u202egpj.exe\u202c and `\u2066x`");
    expect(container.textContent).toBe("file ⟦RLO⟧gpj.exe⟦PDF⟧ and ⟦LRI⟧x");
    expect(container.querySelector("p")?.dir).toBe("auto");
  });
});

describe("too much text", () => {
  test.each([
    ["a line of a megabyte", "word ".repeat(200_000)],
    ["a line without a blank", "x".repeat(1_000_000)],
    ["many marks", "**a_".repeat(20_000)],
    ["many brackets", "[".repeat(100_000)],
    ["a long table", `|a|\n|-|\n${"|1|\n".repeat(20_000)}`],
    ["a wide table", `${"|a".repeat(5_000)}\n${"|-".repeat(5_000)}\n`],
    ["deep quotes", ">".repeat(10_000)],
    ["deep lists", "- ".repeat(10_000)],
  ])("is cut, with a way to see it all: %s", async (_name, text) => {
    const container = await shown(text);
    expect(container.querySelector(".md")?.textContent?.slice(0, 1)).toMatch(/[wx*a[>|-]/);
    fireEvent.click(screen.getByRole("button", { name: "Show all as plain text" }));
    expect(container.querySelector("pre")?.textContent).toBe(text);
    fireEvent.click(screen.getByRole("button", { name: "Show the beginning, formatted" }));
    expect(screen.getByRole("button", { name: "Show all as plain text" })).toBeTruthy();
  });

  test("is cut at the end of a line, and never within a character", () => {
    expect(rendered(`${"a line\n".repeat(5_000)}`).endsWith("\n")).toBe(true);
    expect(rendered(`x${"\u{1f600}".repeat(20_000)}`).at(-1)).toBe("\ude00");
    expect(rendered("short")).toBe("short");
  });
});

describe("text that grows", () => {
  const text = `${"One. ".repeat(400)}\n\n\`\`\`\n${"code\n\n".repeat(500)}\`\`\`\n\n${"Two. ".repeat(400)}\n\n- a\n\n- b`;

  test("is in pieces that end between paragraphs, and not in code", () => {
    const parts = pieces(text);
    expect(parts.join("")).toBe(text);
    expect(parts.map((part) => part.slice(0, 4))).toEqual(["One.", "```\n", "Two."]);
  });

  test("has the same pieces as before when more comes", () => {
    for (const end of [2_500, 5_000, text.length]) {
      const before = pieces(text.slice(0, end)).slice(0, -1);
      expect(pieces(text).slice(0, before.length)).toEqual(before);
    }
  });
});
