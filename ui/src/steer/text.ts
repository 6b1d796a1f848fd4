/** The names in a text with commas or line breaks between them, each once. */
export function commaList(text: string): string[] {
  const names = text.split(/[,\n]/).map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ""))];
}

/** "3 agents", or the name of the only one. */
export function agentsInWords(agentIds: readonly string[]): string {
  return agentIds.length === 1 ? (agentIds[0] as string) : `${agentIds.length.toLocaleString("en")} agents`;
}

/** The first names of a list, and how many more there are. */
export function firstOf(names: readonly string[], most = 8): string {
  const rest = names.length - most;
  return rest <= 0 ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${rest.toLocaleString("en")} more`;
}
