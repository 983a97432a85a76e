/**
 * Parsing of numbers from bytes, correctly rounded and without creating strings.
 *
 * Three paths, each used only where it is exact: up to 15 digits and a power of ten up to 22 need one rounding
 * (Clinger, "How to read floating point numbers accurately", PLDI 1990); up to 30 digits are computed in double-double
 * arithmetic and accepted if its error bound leaves no doubt; all others use `Number`.
 */

/** 10^0 … 10^44 as exact sums of two doubles (10^k = 5^k · 2^k, and 5^44 has 103 bits). */
const MAX_POWER = 44
const POWER_HI = new Float64Array(MAX_POWER + 1)
const POWER_LO = new Float64Array(MAX_POWER + 1)
for (let k = 0; k <= MAX_POWER; k++) {
  const exact = 10n ** BigInt(k)
  POWER_HI[k] = Number(exact)
  POWER_LO[k] = Number(exact - BigInt(POWER_HI[k]!))
}
const MAX_EXACT_POWER = 22
const DIGITS_PER_PART = 15

const SPLITTER = 134217729
/** Wider than the arithmetic's relative error (about 2^-98) over the smallest tail that matters (2^-55). */
const DOUBT = 1 + 2 ** -40

/** The rounding error of the product p = a · b (Dekker 1971); no overflow in the range used here. */
function productError(a: number, b: number, p: number): number {
  const ca = SPLITTER * a
  const ah = ca - (ca - a)
  const al = a - ah
  const cb = SPLITTER * b
  const bh = cb - (cb - b)
  const bl = b - bh
  return ah * bh - p + ah * bl + al * bh + al * bl
}

/** (head · 10^tailDigits + tail) · 10^exponent, correctly rounded; NaN if the rounding is in doubt. */
function roundLong(head: number, tail: number, tailDigits: number, exponent: number): number {
  const p10 = POWER_HI[tailDigits]!
  const m = head * p10
  const hi = m + tail
  const back = hi - m
  const lo = m - (hi - back) + (tail - back) + productError(head, p10, m)
  const power = exponent < 0 ? -exponent : exponent
  const ph = POWER_HI[power]!
  const pl = POWER_LO[power]!
  let q: number
  let r: number
  if (exponent >= 0) {
    q = hi * ph
    r = productError(hi, ph, q) + (hi * pl + lo * ph)
  } else {
    q = hi / ph
    const back2 = q * ph
    r = (hi - back2 - productError(q, ph, back2) + lo - q * pl) / ph
  }
  const x = q + r
  const y = r - (x - q)
  return x + y * DOUBT === x ? x : Number.NaN
}

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
    const b = this.bytes
    const end = this.end
    let p = this.pos
    const negative = b[p] === 45
    if (negative || b[p] === 43) p++
    const start = p
    let head = 0
    let tail = 0
    let digits = 0
    let seen = 0
    let exponent = 0
    let point = false
    this.overflowed = false
    for (; p < end; p++) {
      const c = b[p]!
      const d = c - 48
      if (d >= 0 && d <= 9) {
        seen++
        if (point) exponent--
        // Leading zeros are not significant.
        if (digits < DIGITS_PER_PART) {
          head = head * 10 + d
          if (head > 0) digits++
        } else {
          tail = tail * 10 + d
          digits++
        }
      } else if (c === 46 && !point) point = true
      else break
    }
    if (seen === 0) return this.word(start, negative)
    let exact = true
    const letter = b[p]! | 32
    if (p < end && (letter === 101 || letter === 100)) {
      let q = p + 1
      const isNegativeExponent = b[q] === 45
      if (q < end && (isNegativeExponent || b[q] === 43)) q++
      let e = 0
      const from = q
      for (; q < end; q++) {
        const d = b[q]! - 48
        if (d < 0 || d > 9) break
        if (e < 100000) e = e * 10 + d
      }
      this.ok = q > from
      if (!this.ok) return Number.NaN
      exponent += isNegativeExponent ? -e : e
      // `Number` does not accept D.
      exact = letter === 101
      p = q
    }
    this.ok = this.ends(p)
    if (!this.ok) return Number.NaN
    const token = this.pos
    this.pos = p
    let value = Number.NaN
    if (head === 0) value = 0
    else if (digits <= DIGITS_PER_PART) {
      if (exponent === 0) value = head
      else if (exponent > 0 && exponent <= MAX_EXACT_POWER) value = head * POWER_HI[exponent]!
      else if (exponent < 0 && exponent >= -MAX_EXACT_POWER) value = head / POWER_HI[-exponent]!
      else if (exponent >= -MAX_POWER && exponent <= MAX_POWER) value = roundLong(head, 0, 0, exponent)
    } else if (digits <= 2 * DIGITS_PER_PART && exponent >= -MAX_POWER && exponent <= MAX_POWER)
      value = roundLong(head, tail, digits - DIGITS_PER_PART, exponent)
    if (!Number.isNaN(value)) return negative ? -value : value
    const s = text(b, token, p)
    value = Number(exact ? s : s.replace(/[dD]/, 'e'))
    // Only the token `inf` is infinity; overflowing digits are an error.
    this.ok = Number.isFinite(value)
    this.overflowed = !this.ok
    if (!this.ok) this.pos = token
    return value
  }

  private word(start: number, negative: boolean): number {
    let p = start
    while (!this.ends(p)) p++
    const value = p - start > 8 ? undefined : WORDS[text(this.bytes, start, p).toLowerCase()]
    this.ok = value !== undefined
    if (value === undefined) return Number.NaN
    this.pos = p
    return negative ? -value : value
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
