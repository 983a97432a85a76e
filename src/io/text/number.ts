/** Parsing of numbers from bytes: decimal integers without strings, floating-point numbers by `Number`. */

function text(b: Uint8Array, start: number, end: number): string {
  let s = ''
  for (let i = start; i < end; i++) s += String.fromCharCode(b[i]!)
  return s
}

const WORDS: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
  nan: Number.NaN,
}

const FLOAT = /^([+-]?)(?:((?:\d+\.?\d*|\.\d+)(?:[ed][+-]?\d+)?)|(inf|infinity|nan))$/i

/** A cursor over bytes. A failed read sets `ok` to false and leaves `pos` at the start of the token. */
export class Numbers {
  bytes: Uint8Array = new Uint8Array(0)
  pos = 0
  end = 0
  ok = true
  /** The last failed read was a number beyond f64. */
  overflowed = false

  reset(bytes: Uint8Array): void {
    this.bytes = bytes
    this.pos = 0
    this.end = bytes.length
    this.ok = true
  }

  /** Skips spaces, tabs and carriage returns; returns true unless the line ends. */
  skipBlanks(): boolean {
    const b = this.bytes
    const end = this.end
    let p = this.pos
    while (p < end && (b[p] === 32 || b[p] === 9 || b[p] === 13)) p++
    this.pos = p
    return p < end && b[p] !== 10
  }

  /** Moves past the next newline, or to the end. */
  skipLine(): void {
    const at = this.bytes.indexOf(10, this.pos)
    this.pos = at < 0 ? this.end : at + 1
  }

  /** The rest of the line, one character per byte. */
  line(): string {
    const at = this.bytes.indexOf(10, this.pos)
    return text(this.bytes, this.pos, at < 0 ? this.end : at)
  }

  /** True if a token ends at p. */
  private ends(p: number): boolean {
    if (p >= this.end) return true
    const c = this.bytes[p]!
    return c === 32 || (c >= 9 && c <= 13) || c === 44
  }

  /**
   * Reads a decimal integer with an optional sign. Values beyond 2^53 are inexact (callers check far smaller ranges).
   */
  int(): number {
    const b = this.bytes
    const end = this.end
    let p = this.pos
    const first = b[p]
    const negative = first === 45
    if (negative || first === 43) p++
    let v = 0
    const start = p
    for (; p < end; p++) {
      const d = b[p]! - 48
      if (d < 0 || d > 9) break
      v = v * 10 + d
    }
    this.ok = p > start && this.ends(p)
    if (this.ok) this.pos = p
    return negative ? -v : v
  }

  /** Reads a decimal floating-point number (including `D` exponents, `inf` and `nan`) within f64, correctly rounded. */
  float(): number {
    let p = this.pos
    while (!this.ends(p)) p++
    const token = text(this.bytes, this.pos, p)
    const [, sign, digits, word] = FLOAT.exec(token) ?? []
    const value = digits === undefined ? WORDS[word?.toLowerCase() ?? ''] : Number(digits.replace(/d/i, 'e'))
    // Only the token `inf` is infinity; overflowing digits are an error.
    this.overflowed = digits !== undefined && value === Number.POSITIVE_INFINITY
    this.ok = value !== undefined && !this.overflowed
    if (value === undefined) return Number.NaN
    if (this.ok) this.pos = p
    return sign === '-' ? -value : value
  }

  /** The token at the cursor, shortened, for messages. */
  token(): string {
    let p = this.pos
    while (!this.ends(p) && p < this.pos + 40) p++
    const s = text(this.bytes, this.pos, p)
    return this.ends(p) ? s : `${s}…`
  }
  /** The token just read, as written. */
  lastToken(): string {
    let start = this.pos
    while (start > 0 && this.bytes[start - 1]! > 32 && this.bytes[start - 1] !== 44) start--
    return text(this.bytes, start, Math.min(this.pos, start + 40))
  }
}
