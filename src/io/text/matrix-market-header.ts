/**
 * The banner and the size line of Matrix Market files (Boisvert, Pozo, Remington: "The Matrix Market Exchange
 * Formats: Initial Design", NISTIR 5935, 1996).
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'

export interface Banner {
  readonly layout: 'coordinate' | 'array'
  readonly field: 'real' | 'integer' | 'pattern'
  /** For `integer`: unsigned. */
  readonly unsigned: boolean
  readonly symmetry: 'general' | 'symmetric' | 'skew-symmetric'
}

export interface Header extends Banner {
  readonly rows: number
  readonly cols: number
  /** Number of entry lines as stated in the file, before symmetry is expanded. */
  readonly entries: number
}

const INT32_MAX = 2147483647
const EXPECTED_BANNER =
  '%%MatrixMarket matrix <coordinate|array> <real|integer|pattern> <general|symmetric|skew-symmetric>'

const oneOf = <T extends string>(word: string | undefined, options: readonly T[]): T | undefined =>
  options.find((o) => o === word)

/** Parses the banner. @throws SptError `io/banner` (not Matrix Market), `io/unsupported` (complex, hermitian) */
export function parseBanner(line: string, name: string): Banner {
  const words = line.trim().split(/\s+/)
  const [banner, object, layoutWord, fieldWord, symmetryWord, ...otherWords] = words.map((w) =>
    w.toLowerCase(),
  )
  const reject = (message: string): never =>
    failWith('io/banner', `${name}:1: ${message}`, { expected: EXPECTED_BANNER })
  if (banner !== '%%matrixmarket')
    return reject(
      `a Matrix Market file starts with a %%MatrixMarket line, this one with '${line.trim().slice(0, 60)}'`,
    )
  if (object !== 'matrix') return reject(`the object '${object ?? ''}' is not supported, only 'matrix'`)
  const layout = oneOf(layoutWord, ['coordinate', 'array'])
  if (!layout) return reject(`unknown layout '${layoutWord ?? ''}'`)
  if (fieldWord === 'complex' || symmetryWord === 'hermitian')
    return failWith(
      'io/unsupported',
      `${name}:1: complex (and so hermitian) matrices are not supported: no element type is complex`,
      { hint: 'Write the real and the imaginary part as two files.' },
    )
  // Some tools write `double` for real, scipy writes `unsigned-integer`.
  const unsigned = fieldWord === 'unsigned-integer'
  const field = unsigned
    ? 'integer'
    : fieldWord === 'double'
      ? 'real'
      : oneOf(fieldWord, ['real', 'integer', 'pattern'])
  if (!field) return reject(`unknown field '${fieldWord ?? ''}'`)
  const symmetry = oneOf(symmetryWord, ['general', 'symmetric', 'skew-symmetric'])
  if (!symmetry) return reject(`unknown symmetry '${symmetryWord ?? ''}'`)
  if (otherWords.length > 0) return reject(`'${otherWords.join(' ')}' after the symmetry`)
  if (field === 'pattern' && layout === 'array') return reject('an array has values: it cannot be a pattern')
  if (field === 'pattern' && symmetry === 'skew-symmetric')
    return reject('a pattern has no sign: it cannot be skew-symmetric')
  return { layout, field, symmetry, unsigned }
}

/** Parses the size line. @throws SptError `io/size-line` */
export function parseSizes(line: string, lineNumber: number, banner: Banner, name: string): Header {
  const where = `${name}:${lineNumber}`
  const fieldNames = banner.layout === 'coordinate' ? ['rows', 'columns', 'entries'] : ['rows', 'columns']
  const expected = `${fieldNames.join(', ')}: ${fieldNames.length} whole numbers from 0 to ${INT32_MAX}`
  const reject = (message: string): never => failWith('io/size-line', `${where}: ${message}`, { expected })
  const words = line.trim().split(/\s+/)
  if (words.length !== fieldNames.length)
    return reject(
      `the size line of this ${banner.layout} file has ${words.length} fields, not ${fieldNames.length}`,
    )
  const sizes = words.map((w, k) => {
    if (!/^[+-]?\d+$/.test(w))
      return reject(`the number of ${fieldNames[k]}, '${w.slice(0, 40)}', is not a whole number`)
    const v = Number(w)
    if (v < 0) return reject(`the number of ${fieldNames[k]} is negative: ${w}`)
    if (v > INT32_MAX) return reject(`the number of ${fieldNames[k]}, ${w}, does not fit 32-bit indices`)
    return v
  })
  const rows = sizes[0]!
  const cols = sizes[1]!
  if (banner.symmetry !== 'general' && rows !== cols)
    return reject(`a ${banner.symmetry} matrix is square, not ${rows} × ${cols}`)
  const entryCount =
    banner.symmetry === 'general'
      ? rows * cols
      : banner.symmetry === 'symmetric'
        ? (rows * (rows + 1)) / 2
        : (rows * (rows - 1)) / 2
  return { ...banner, rows, cols, entries: banner.layout === 'array' ? entryCount : sizes[2]! }
}
