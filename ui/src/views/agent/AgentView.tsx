export default function AgentView() {
  return <h1>Agent</h1>;
}
