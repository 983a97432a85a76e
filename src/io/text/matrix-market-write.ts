/** Writes Matrix Market: coordinates as `coordinate general`, dense matrices as `array general`. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { type Dtype, INT_RANGE, isFloat } from '../../ir/values/dtype.ts'
import { type CoordTensor, type DenseTensor, decoder } from '../../storage/tensor.ts'

const LINES_PER_CHUNK = 1 << 13

/** Shortest decimal that reads back as the same number. */
function printNumber(v: number): string {
  if (Number.isFinite(v)) return Object.is(v, -0) ? '-0' : String(v)
  return Number.isNaN(v) ? 'nan' : v > 0 ? 'inf' : '-inf'
}

const fieldOf = (dtype: Dtype, values: ArrayLike<number>): string => {
  if (isFloat(dtype)) return 'real'
  // Not all readers support this keyword, so it is used only if needed.
  return dtype === 'u32' && Array.prototype.some.call(values, (v: number) => v > INT_RANGE.i32[1])
    ? 'unsigned-integer'
    : 'integer'
}

function* lines(tensor: CoordTensor | DenseTensor, rows: number, cols: number): Generator<string> {
  const { dtype, values } = tensor
  const decode = decoder(dtype) ?? ((v: number) => v)
  if (tensor.kind === 'dense') {
    yield `%%MatrixMarket matrix array ${fieldOf(dtype, tensor.values)} general\n${rows} ${cols}\n`
    for (let j = 0; j < cols; j++)
      for (let i = 0; i < rows; i++) yield `${printNumber(decode(tensor.values[i * cols + j]!))}\n`
    return
  }
  const [r, c] = tensor.coords as readonly [Int32Array, Int32Array]
  yield `%%MatrixMarket matrix coordinate ${values ? fieldOf(dtype, values) : 'pattern'} general\n${rows} ${cols} ${r.length}\n`
  for (let e = 0; e < r.length; e++)
    yield values
      ? `${r[e]! + 1} ${c[e]! + 1} ${printNumber(decode(values[e]!))}\n`
      : `${r[e]! + 1} ${c[e]! + 1}\n`
}

/** The file in chunks. A dense vector becomes one column. @throws SptError `io/rank` for more than two dimensions */
export function matrixMarketChunks(tensor: CoordTensor | DenseTensor): Generator<Uint8Array> {
  const column = tensor.kind === 'dense' && tensor.shape.length === 1
  const [rows, cols] = column ? [tensor.shape[0]!, 1] : tensor.shape
  if (rows === undefined || cols === undefined || tensor.shape.length > 2)
    failWith('io/rank', `Matrix Market holds matrices, not tensors of ${tensor.shape.length} dimensions`, {
      hint: tensor.kind === 'dense' ? 'Write .npy instead.' : 'Write .npz instead.',
    })
  return encodeLines(lines(tensor, rows, cols))
}

function* encodeLines(lines: Iterable<string>): Generator<Uint8Array> {
  const encode = new TextEncoder()
  let text: string[] = []
  for (const line of lines) {
    text.push(line)
    if (text.length < LINES_PER_CHUNK) continue
    yield encode.encode(text.join(''))
    text = []
  }
  yield encode.encode(text.join(''))
}
