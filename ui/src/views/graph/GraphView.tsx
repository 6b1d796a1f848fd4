export default function GraphView() {
  return <h1>Graph</h1>;
}
