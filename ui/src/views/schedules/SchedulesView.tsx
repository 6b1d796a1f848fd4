export default function SchedulesView() {
  return <h1>Schedules</h1>;
}
