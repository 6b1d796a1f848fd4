export default function LimitsView() {
  return <h1>Limits</h1>;
}
