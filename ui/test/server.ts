import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

export const ROOT = resolve(import.meta.dirname, "../..");
const OWN_PYTHON = join(ROOT, ".venv/bin/python");
export const PYTHON = process.env.WHISPERER_TEST_PYTHON ?? (existsSync(OWN_PYTHON) ? OWN_PYTHON : "python3");

/** A real server on a data folder of its own. It keeps its port and its token when it is started again. */
export class TestServer {
  #process: ChildProcess | null = null;

  private constructor(
    private readonly data: string,
    private page: URL,
    private readonly rules: readonly string[],
  ) {}

  /** `rules` is the file with what its scripted model says; `fill` puts into its folder what is there already. */
  static async start(rules?: string, fill?: (data: string) => Promise<unknown>): Promise<TestServer> {
    const data = await mkdtemp(join(tmpdir(), "whisperer-"));
    await fill?.(data);
    const server = new TestServer(data, new URL("http://127.0.0.1:0"), rules === undefined ? [] : [rules]);
    await server.start();
    return server;
  }

  get url(): string {
    return this.page.origin;
  }

  /** What a person opens in a browser. */
  get address(): string {
    return this.page.href;
  }

  get token(): string {
    return this.page.searchParams.get("token") ?? "";
  }

  async start(): Promise<void> {
    const program = join(import.meta.dirname, "server.py");
    const child = spawn(PYTHON, [program, this.data, this.page.port || "0", ...this.rules], {
      cwd: ROOT,
      env: { ...process.env, PYTHONPATH: ROOT },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#process = child;
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith("ready ")) {
        this.page = new URL(line.slice("ready ".length));
        return;
      }
    }
    throw new Error("The server did not start; what it says is above.");
  }

  /** End it as a power cut would. */
  async kill(): Promise<void> {
    await this.#end((child) => child.kill("SIGKILL"));
  }

  async remove(): Promise<void> {
    await this.#end((child) => child.stdin?.end());
    await rm(this.data, { recursive: true });
  }

  async #end(tell: (child: ChildProcess) => void): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null) return;
    const ended = once(child, "exit");
    tell(child);
    await ended;
  }
}
