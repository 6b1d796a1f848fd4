import { expect, test } from "vitest";
import { withoutMarks } from "../../src/parts/marks";

test("people are shown what was said without the marks around it", () => {
  const prompt = 'New mail.\n<said by="alice" id="418302">\nHello\n</said id="418302">\nEnd.';
  expect(withoutMarks(prompt)).toBe("New mail.\nHello\nEnd.");
});

test("what only looks like a mark stays", () => {
  const text = 'I wrote <said by="x" id="1"> in a line\n<said by="x">\n&lt;said id="1">';
  expect(withoutMarks(text)).toBe(text);
});
