/** Notebook output: one value in several media types, of which the viewer picks one. */

/** Contents by type of medium; bytes in base64. */
export type MimeBundle = Readonly<Record<string, string>>

/** Method through which Deno's Jupyter kernel displays a value. */
export const JUPYTER_DISPLAY: unique symbol = Symbol.for('Jupyter.display') as never

/**
 * Something to show: in a notebook as the last value of a cell or through `display`, elsewhere through `bundle` and
 * `toString`.
 */
export abstract class CellOutput {
  /** Its contents by type of medium, as notebooks store them; `text/plain` is always there. */
  abstract bundle(): Promise<MimeBundle>

  /** The same for a page: HTML in which nothing is fetched, figures as SVG. */
  abstract html(): string

  /** The value as plain text, for terminals. */
  abstract toString(): string

  [JUPYTER_DISPLAY](): Promise<MimeBundle> {
    return this.bundle()
  }

  /** Output of `console.log` in Node. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  /** Output of `console.log` in Deno. */
  [Symbol.for('Deno.customInspect')](): string {
    return this.toString()
  }
}

interface JupyterHost {
  readonly Deno?: { readonly jupyter?: { display(value: unknown): Promise<void> } }
}

/** Shows several values of one cell, in order: in a notebook as its outputs, elsewhere as text in the console. */
export async function display(...values: readonly CellOutput[]): Promise<void> {
  // Outside of a notebook, Deno's `jupyter` is there and throws.
  const jupyter = inNotebook() ? (globalThis as JupyterHost).Deno?.jupyter : undefined
  for (const value of values)
    if (jupyter) await jupyter.display(value)
    // Whatever else is given is shown as elsewhere.
    else console.log(value instanceof CellOutput ? value.toString() : value)
}

function inNotebook(): boolean {
  try {
    return typeof (globalThis as JupyterHost).Deno?.jupyter?.display === 'function'
  } catch {
    return false
  }
}
