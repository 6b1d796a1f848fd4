export default function ToolsView() {
  return <h1>Tools</h1>;
}
