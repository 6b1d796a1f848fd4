import { Component, type ReactNode } from "react";
import { Problem } from "../parts/Messages";

/** Keeps a mistake in one view from taking the whole page down. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <Problem error={error} onRetry={() => this.setState({ error: null })} />;
  }
}
