/** The global scope of a worker, as far as it is used: the compiler is checked without the types of the DOM. */
interface WorkerScope {
  readonly location: { readonly href: string }
  readonly navigator: { readonly gpu?: GPU }
  addEventListener<T>(type: 'message', listener: (event: { readonly data: T }) => void): void
  postMessage(message: unknown): void
}

export const scope = globalThis as unknown as WorkerScope
