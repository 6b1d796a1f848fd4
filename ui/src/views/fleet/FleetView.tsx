export default function FleetView() {
  return <h1>Fleet</h1>;
}
