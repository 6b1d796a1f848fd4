/** What the user wrote as the data of an event: a value, or what is wrong with it. */
export function dataOf(text: string): { value: unknown; problem: string | null } {
  if (text.trim() === "") return { value: null, problem: null };
  try {
    return { value: JSON.parse(text) as unknown, problem: null };
  } catch (error) {
    return { value: null, problem: `This is not JSON: ${(error as Error).message}. Text stands in double quotes.` };
  }
}
