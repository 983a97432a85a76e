/** Addresses in `.npz` files: the part after `#` in `graph.npz#rel,src,dst`. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { CoordTensor, Tensor } from '../../storage/tensor.ts'
import type { Npz } from './npz.ts'
import { isLayoutName } from './npz-layouts.ts'
import { checkCoords, hasMatrix, matrixGroups, readCoords } from './scipy.ts'

export interface AddressOptions {
  readonly dtype?: Dtype | undefined
  /** Shape of a tensor made of coordinate arrays; default: the largest coordinate of each, plus one. */
  readonly shape?: readonly number[] | undefined
}

/** Valid addresses of an archive: names of matrix groups, then of arrays. */
const addresses = (npz: Npz): string[] => [...matrixGroups(npz), ...npz.names]

function rejectUnknown(npz: Npz, address: string): never {
  const candidates = addresses(npz)
  return failWith('io/unknown-array', `${npz.name} has no array or matrix '${address}'`, {
    lookup: { name: address, candidates },
    expected: candidates.join(', '),
  })
}

async function readColumns(
  npz: Npz,
  names: readonly string[],
  options: AddressOptions,
): Promise<CoordTensor> {
  for (const name of names) if (!npz.has(name)) rejectUnknown(npz, name)
  const coords = await Promise.all(names.map((name) => npz.integers(name)))
  const largest = (c: Int32Array): number => c.reduce((a, b) => Math.max(a, b), -1)
  if (options.shape && options.shape.length !== names.length)
    failWith(
      'io/shape',
      `${npz.name}#${names.join(',')}: ${options.shape.length} sizes for ${names.length} dimensions`,
      { expected: `a size for each of ${names.join(', ')}` },
    )
  const shape = options.shape ?? coords.map((c) => largest(c) + 1)
  return checkCoords(
    { kind: 'coords', shape, coords, values: null, dtype: options.dtype ?? 'f32' },
    names.map((name) => `${npz.name}#${name}`),
  )
}

/** Prefix of the group that `address` names: empty for the file itself, `feature_` for `feature`. */
const prefixOf = (address: string | undefined): string => (address === undefined ? '' : `${address}_`)

/**
 * The tensor at `address`: `name` is an array, `prefix` a sparse matrix stored as `prefix_indptr` and so on, `a,b,c` a
 * pattern whose coordinates are those arrays, `csr` (or another layout) the file's matrix, ignoring further arrays.
 * Without an address: the file's sparse matrix, or its only array. @throws SptError `io/unknown-array`, `io/ambiguous`,
 * and errors of reading
 */
export async function readNpzTensor(
  npz: Npz,
  address: string | undefined,
  options: AddressOptions,
): Promise<Tensor> {
  if (address?.includes(','))
    return readColumns(
      npz,
      address.split(',').map((s) => s.trim()),
      options,
    )
  if (address !== undefined && npz.has(address)) return npz.dense(address, options.dtype)
  const prefix = prefixOf(address)
  if (hasMatrix(npz, prefix)) return readCoords(npz, prefix, options)
  if (address !== undefined && hasMatrix(npz) && (await isLayoutName(npz, address)))
    return readCoords(npz, '', { ...options, layout: address })
  if (address !== undefined) return rejectUnknown(npz, address)
  const [onlyName] = npz.names
  if (onlyName !== undefined && npz.names.length === 1) return npz.dense(onlyName, options.dtype)
  if (onlyName === undefined)
    return failWith('io/empty', `${npz.name} holds no arrays`, {
      hint: 'write the arrays with numpy.savez or scipy.sparse.save_npz',
    })
  const candidates = addresses(npz)
  return failWith('io/ambiguous', `${npz.name} holds several arrays and no scipy matrix`, {
    expected: candidates.map((c) => `${npz.name}#${c}`).join(', '),
    hint: `Name an array, or join coordinate arrays: ${npz.name}#${npz.names.slice(0, 2).join(',')}.`,
  })
}
