import { expect, test } from "vitest";
import { joinedFinal } from "../../src/parts/continuations";

const begins = (final: string) => ({ final, continuesCut: false });
const goesOn = (final: string) => ({ final, continuesCut: true });

test("a part that was cut is continued where it stopped", () => {
  expect(joinedFinal([begins("\nGood mor"), goesOn("ning,\n"), goesOn("  Ann. ")])).toBe("Good morning,\n  Ann.");
});

test("after a part that asked for more the next begins a line", () => {
  expect(joinedFinal([begins("One "), begins("\n Two"), begins(""), goesOn("Three")])).toBe("One\nTwo\nThree");
});

test("a part without text changes nothing", () => {
  expect(joinedFinal([begins("Good mor"), goesOn(""), goesOn("ning")])).toBe("Good morning");
  expect(joinedFinal([])).toBe("");
});
