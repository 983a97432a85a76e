/**
 * A source as the grammar gets it. Ohm takes its time and 2 KB for each character that it matches, so there is one blank
 * for each run of blanks and comments, and nothing between backticks, where another language stands.
 */
export interface Condensed {
  readonly text: string
  /** The place in the source of a character of `text`, or of its end. */
  readonly at: (place: number) => number
  /** Texts of declarations, one or several in each: between them, `text` is one. */
  readonly pieces: readonly string[]
}

/** Is told from left to right what to leave out. */
export class Condenser {
  readonly #source: string
  readonly #kept: string[] = []
  readonly #at: Uint32Array
  #length = 0
  /** Up to where the source is kept, or left out. */
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

  /** Blanks and comments; a line that ends right here still ends, for strings that are not closed on it. */
  blank(start: number, end: number): void {
    if (end === start + 1) return
    this.#keep(start)
    this.#at[this.#length++] = start
    this.#kept.push(this.#source[start] === '\n' ? '\n' : ' ')
    this.#from = end
  }

  /** Outermost braces end here; those of imports are followed by more. */
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
