import { describe, expect, test } from "vitest";
import { bytes, count, duration, money } from "../../src/parts/format";

describe("quantities", () => {
  test("a length of time is told in its two largest units", () => {
    expect([0.25, 1, 59, 61, 3600, 3 * 3600 + 240, 90_000].map(duration)).toEqual([
      "250 ms",
      "1 s",
      "59 s",
      "1 min 1 s",
      "1 h",
      "3 h 4 min",
      "1 d 1 h",
    ]);
  });

  test("small amounts of money keep their digits, unknown ones are a dash", () => {
    expect([null, 0, 0.0012, 12.345].map(money)).toEqual(["–", "$0.00", "$0.0012", "$12.35"]);
  });

  test("large counts and sizes are shortened", () => {
    expect([count(9_999), count(1_250_000), bytes(0), bytes(1536), bytes(5 * 1024 ** 3)]).toEqual([
      "9,999",
      "1.3M",
      "0 B",
      "1.5 KiB",
      "5 GiB",
    ]);
  });
});
