/**
 * The source as passed to the grammar. Ohm needs time and 2 KB for each character, so runs of blanks and comments are
 * condensed to one blank, and text of other languages between backticks is removed.
 */
export interface Condensed {
  readonly text: string
  /** The source offset of an offset in `text` (its end included). */
  readonly at: (place: number) => number
  /** `text` cut into pieces of one or more declarations. */
  readonly pieces: readonly string[]
}

/** Builds condensed text; its methods are called with increasing offsets. */
export class Condenser {
  readonly #source: string
  readonly #kept: string[] = []
  readonly #at: Uint32Array
  #length = 0
  /** Source offset up to which text was kept or omitted. */
  #from = 0
  readonly #ends: number[] = []

  constructor(source: string) {
    this.#source = source
    this.#at = new Uint32Array(source.length + 1)
  }

  #keep(until: number): void {
    for (let p = this.#from; p < until; p++) this.#at[this.#length++] = p
    if (until > this.#from) this.#kept.push(this.#source.slice(this.#from, until))
    this.#from = until
  }

  omit(start: number, end: number): void {
    this.#keep(start)
    this.#from = end
  }

  /**
   * Replaces blanks and comments by one blank. A line break at the start is kept, so that unclosed strings end on their
   * line.
   */
  blank(start: number, end: number): void {
    if (end === start + 1) return
    this.#keep(start)
    this.#at[this.#length++] = start
    this.#kept.push(this.#source[start] === '\n' ? '\n' : ' ')
    this.#from = end
  }

  /** Marks the end of a declaration at its outermost closing brace; the braces of imports do not end one. */
  declared(end: number): void {
    if (!/^\s*from\b/.test(this.#source.slice(end, end + 16)))
      this.#ends.push(this.#length + end - this.#from)
  }

  end(): Condensed {
    this.#keep(this.#source.length)
    this.#at[this.#length] = this.#source.length
    const text = this.#kept.join('')
    const starts = [0, ...this.#ends]
    return {
      text,
      at: (place) => this.#at[place]!,
      pieces: starts.map((start, k) => text.slice(start, starts[k + 1])),
    }
  }
}
