import type { Stage } from "./stage";

/** A session in full swing: agents in every state, a switch under way, and something to decide in every place. */
export async function playScene(stage: Stage): Promise<{ roomId: string }> {
  const team = [
    ["alice", "Alice", "Talks with people and brings in the others"],
    ["bob", "Bob", "Counts the boats in the harbour"],
    ["carol", "Carol", "Keeps the tide tables"],
    ["dave", "Dave", "Repairs the nets"],
    ["erin", "Erin", "Writes the weather report"],
    ["frank", "Frank", "Watches the light at night"],
  ] as const;
  for (const [agentId, name, description] of team)
    await stage.call("async.createAgent", { agentId, config: { name, description } });
  const writer = { name: "Grace", description: "Keeps the book", tools: ["write_file"], approve: ["write_file"] };
  await stage.call("async.createAgent", { agentId: "grace", config: writer });
  const give = (agentId: string, prompt: string) =>
    stage.call<{ taskId: string }>("async.sendTask", { agentId, prompt });
  const ended = async ({ taskId }: { taskId: string }) => void (await stage.call("task.wait", { taskId }));

  await ended(await give("alice", "Say hello"));
  await ended(await give("alice", "please ask carol"));
  await ended(await give("carol", "delegate to dave"));
  await ended(await give("erin", "mail me"));
  await ended(await give("dave", "go wrong"));
  await stage.hold("quay");
  await give("erin", "Look until quay");
  await stage.call("async.pauseAgent", { agentId: "bob", reason: "The tide is out" });
  await give("alice", "please ask bob");
  await give("grace", "write it down");
  await stage.call("async.sleepAgent", { agentId: "frank", durationSeconds: 7200, wakeEvents: ["fog"] });
  await stage.call("async.stopAgent", { agentId: "dave", reason: "On leave" });
  await stage.call("async.broadcastEvent", { event: "low_tide", data: { metres: 0.4 } });
  await stage.call("schedule.create", { agentId: "erin", prompt: "Write the weather report", cron: "0 6 * * *" });
  await stage.call("schedule.create", { event: "high_tide", intervalSeconds: 43_200 });
  await stage.call("limits.set", { limits: { max_tokens: 1_000_000 } });

  const room = { members: ["carol", "erin", "frank"], title: "The harbour" };
  const { roomId } = await stage.call<{ roomId: string }>("room.create", room);
  const post = { roomId, text: "@carol What does the tide table say?" };
  await stage.call("room.post", post);
  await stage.call("room.openChat", { agentId: "alice" });
  return { roomId };
}
