/** The state of the page in the fragment of its address: JSON, deflated, in the URL-safe alphabet of base64. */
import { deflateSync, Inflate, strFromU8, strToU8 } from 'fflate'
import { DEVICES, type DeviceChoice, type MatrixChoice, type Variant } from '../protocol.ts'

export const VIEWS = ['result', 'picture', 'loops', 'js', 'wgsl', 'cuda'] as const
export type View = (typeof VIEWS)[number]

export interface PageState {
  readonly text: string
  readonly kernel: string
  readonly matrix: MatrixChoice
  readonly values: Readonly<Record<string, number>>
  /** One, or two side by side. */
  readonly variants: readonly Variant[]
  /** The shown step of each variant's loops; −1: the last. */
  readonly steps: readonly number[]
  readonly view: View
  readonly device: DeviceChoice | null
}

const VERSION = '1'
/** Bytes of a dropped file, deflated, up to which a link contains the file. */
const MAX_FILE = 64 * 1024
/** Bytes that a link may expand to. */
const MAX_STATE = 8 * 2 ** 20

/** The fragment, and whether the file of the matrix is in it. */
export function encode(state: PageState): { readonly hash: string; readonly complete: boolean } {
  const { bytes } = state.matrix
  const packed = bytes && deflated(bytes)
  const fits = !packed || packed.length <= MAX_FILE
  const matrix = {
    name: state.matrix.name,
    ...(packed && (fits ? { file: base64(packed) } : { missing: true })),
  }
  const json = JSON.stringify({ ...state, matrix })
  return { hash: VERSION + base64(deflateSync(strToU8(json), { level: 9 })), complete: fits }
}

const packedFiles = new WeakMap<Uint8Array, Uint8Array>()
function deflated(bytes: Uint8Array): Uint8Array {
  const known = packedFiles.get(bytes)
  if (known) return known
  const packed = deflateSync(bytes, { level: 9 })
  packedFiles.set(bytes, packed)
  return packed
}

/** The state in a fragment. `missing`: the name of a file that was too large for the link. @throws Error if it is damaged */
export function decode(hash: string): { readonly state: PageState; readonly missing: string | null } {
  if (!hash.startsWith(VERSION)) throw new Error('the link is of another version of this page')
  let value: unknown
  try {
    value = JSON.parse(strFromU8(inflated(bytesOf(hash.slice(VERSION.length)))))
  } catch {
    throw new Error('the link is damaged or incomplete')
  }
  if (!isRecord(value)) throw new Error('the link holds no program')
  const { text, kernel, matrix, values, variants, steps, view, device } = value
  const { name, file, missing } = isRecord(matrix) ? matrix : {}
  const isVariant = (v: unknown): v is Variant =>
    isRecord(v) && typeof v.format === 'string' && typeof v.schedule === 'string'
  if (
    typeof text !== 'string' ||
    typeof kernel !== 'string' ||
    typeof name !== 'string' ||
    !(file === undefined || typeof file === 'string') ||
    !isRecord(values) ||
    !Object.values(values).every((v) => typeof v === 'number' && Number.isFinite(v)) ||
    !Array.isArray(variants) ||
    ![1, 2].includes(variants.length) ||
    !variants.every(isVariant) ||
    !Array.isArray(steps) ||
    !steps.every((s) => Number.isInteger(s)) ||
    !VIEWS.includes(view as View) ||
    !(device === null || DEVICES.includes(device as DeviceChoice))
  )
    throw new Error('the link lacks a part of the program')
  const bytes = typeof file === 'string' ? { bytes: inflated(bytesOf(file)) } : {}
  return {
    state: {
      text,
      kernel,
      matrix: { name, ...bytes },
      values: values as Record<string, number>,
      variants: variants.map(({ format, schedule }) => ({ format, schedule })),
      steps,
      view: view as View,
      device: device as DeviceChoice | null,
    },
    missing: missing === true ? name : null,
  }
}

const isRecord = (x: unknown): x is Record<string, unknown> =>
  typeof x === 'object' && x !== null && !Array.isArray(x)

/** Inflates a stream that may come from anyone: within a limit. */
function inflated(bytes: Uint8Array): Uint8Array {
  const chunks: Uint8Array[] = []
  let size = 0
  let isWhole = false
  const stream = new Inflate((chunk, final) => {
    size += chunk.length
    if (size > MAX_STATE) throw new Error('too large')
    chunks.push(chunk)
    isWhole ||= final
  })
  for (let k = 0; k < bytes.length; k += 4096)
    stream.push(bytes.subarray(k, k + 4096), k + 4096 >= bytes.length)
  if (!isWhole) throw new Error('incomplete')
  const out = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

function base64(bytes: Uint8Array): string {
  let text = ''
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192))
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

const bytesOf = (text: string): Uint8Array =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
