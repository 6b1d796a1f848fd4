import { Component, type ReactNode } from "react";
import { Problem } from "../parts/Messages";

interface BoundaryProps {
  /** Where that is which is shown: a mistake at one place is none at the next. */
  place: string;
  children: ReactNode;
}

interface Mistake {
  error: Error | null;
  place: string;
}

/** Keeps a mistake in one view from taking the whole page down. */
export class Boundary extends Component<BoundaryProps, Mistake> {
  override state: Mistake = { error: null, place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps({ place }: BoundaryProps, before: Mistake): Mistake | null {
    return place === before.place ? null : { error: null, place };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <Problem error={error} onRetry={() => this.setState({ error: null })} />;
  }
}
