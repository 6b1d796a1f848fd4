import { useSelection } from "../../shell/addresses";
import { McpServers } from "./McpServers";
import { Sandbox } from "./Sandbox";
import { Templates } from "./Templates";
import { ToolTable } from "./ToolTable";
import "./tools.css";

const TABS = { tools: "Tools", mcp: "MCP servers", templates: "Templates", sandbox: "Sandbox" };
type Tab = keyof typeof TABS;
const NAMES = Object.keys(TABS) as Tab[];

/** What agents can be granted, where it comes from, and what they can be made of. */
export default function ToolsView() {
  const [chosen, setTab] = useSelection("tab", "tools");
  const tab = NAMES.find((name) => name === chosen) ?? "tools";
  return (
    <>
      <header className="view-head">
        <h1>Tools</h1>
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a line everywhere */}
        <div className="tools-tabs" role="group" aria-label="Show">
          {NAMES.map((name) => (
            <button type="button" key={name} aria-pressed={name === tab} onClick={() => setTab(name)}>
              {TABS[name]}
            </button>
          ))}
        </div>
      </header>
      {tab === "tools" && <ToolTable />}
      {tab === "mcp" && <McpServers />}
      {tab === "templates" && <Templates />}
      {tab === "sandbox" && <Sandbox />}
    </>
  );
}
