/** Notebook output: one value in several media types, of which the viewer picks one. */

/** Contents by media type; binary contents in base64. */
export type MimeBundle = Readonly<Record<string, string>>

/** Method through which Deno's Jupyter kernel displays a value. */
const JUPYTER_DISPLAY: unique symbol = Symbol.for('Jupyter.display') as never

/**
 * A displayable value: shown in a notebook as the last value of a cell or through `display`, elsewhere through `bundle` and
 * `toString`.
 */
export abstract class CellOutput {
  /** Its contents by media type, as notebooks store them; always includes `text/plain`. */
  async bundle(): Promise<MimeBundle> {
    return { 'text/html': this.html(), 'text/plain': this.toString() }
  }

  /** Its contents as HTML for a page, without external resources; figures are SVG. */
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

/** Displays values in order: in a notebook as outputs of the cell, elsewhere as text in the console. */
export async function display(...values: readonly CellOutput[]): Promise<void> {
  // Outside of a notebook, Deno defines `jupyter`, and access to it throws.
  const jupyter = inNotebook() ? (globalThis as JupyterHost).Deno?.jupyter : undefined
  for (const value of values)
    if (jupyter) await jupyter.display(value)
    // Other values are printed unchanged.
    else console.log(value instanceof CellOutput ? value.toString() : value)
}

function inNotebook(): boolean {
  try {
    return typeof (globalThis as JupyterHost).Deno?.jupyter?.display === 'function'
  } catch {
    return false
  }
}
