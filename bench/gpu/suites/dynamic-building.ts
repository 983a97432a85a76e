/**
 * Finding the tiles of a dense f16 matrix, 4096², that hold anything, alone: our kernels' launches with products of no
 * columns, against PyTorch, which waits for how many there are.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { entryOf, type PythonResult, pythonPeers } from '../../peers/python.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Case, type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct } from '../contestants.ts'
import { bindMasked, type Masked, make } from '../masked.ts'
import type { OurDevice } from '../ours.ts'
import { percent } from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { ELEMENT, TILES, type Tile, tileName, tilesAsked, tileText } from '../tiles.ts'

const SIZE = 4096
/** Columns of the product that lists are checked by. */
const CHECKED = 256
const HELD = [0.01, 0.1]

export async function dynamicBuilding(s: Session): Promise<void> {
  const { matrices, layers } = s.options
  const cases = tilesAsked(matrices, [...TILES, ELEMENT]).flatMap((tile) =>
    HELD.map((held) => ({ tile, held, masked: make([SIZE, CHECKED, SIZE], tile, held) })),
  )
  const isWeb = layers?.on === 'webgpu'
  const python = isWeb ? [] : await peers(s, cases)
  for (const { tile, held, masked } of cases) {
    if (s.late()) return
    await (isWeb ? buildingOnWebgpu(s, tile, held, masked) : building(s, tile, held, masked, python))
  }
}

interface PatternCase {
  readonly tile: Tile
  readonly held: number
  readonly masked: Masked
}

const idOf = (tile: Tile, held: number): string => `${tileName(tile)} ${held}`

const peers = (s: Session, cases: readonly PatternCase[]): Promise<readonly PythonResult[]> =>
  pythonPeers('tile_lists.py', s, (folder) =>
    cases.map(({ tile, held, masked }, k) => {
      const file = join(folder, String(k))
      writeFileSync(`${file}-values`, masked.A)
      const [rows, , columns] = masked.shape
      return { id: idOf(tile, held), file, rows, columns, high: tile[0], wide: tile[1] }
    }),
  )

export async function building(
  s: Session,
  tile: Tile,
  held: number,
  masked: Masked,
  python: readonly PythonResult[],
): Promise<void> {
  const suite = `dynamic-building-${tileName(tile)}`
  const base = caseOf(s, suite, tile, held, masked)
  if (s.has(suite, base.data, base.at)) return
  const field = fieldOf(suite, s.options.schedules)
  const device = await s.cuda()
  const entries = await compete(
    field.candidates.map((c) => alone(device, c, masked)),
    field.standard,
    s,
  )
  const others = python.filter((r) => r.id === idOf(tile, held)).map(entryOf)
  await s.done({ ...base, entries: [...entries, ...others], standard: field.standard })
}

/** The same on WebGPU, with our CUDA in a peer's place. */
export async function buildingOnWebgpu(s: Session, tile: Tile, held: number, masked: Masked): Promise<void> {
  const suite = `dynamic-building-webgpu-${tileName(tile)}`
  const base = caseOf(s, suite, tile, held, masked)
  if (s.has(suite, base.data, base.at)) return
  const field = fieldOf(suite, s.options.schedules)
  const [on, cuda] = [await s.webgpu(), await s.cuda().catch(() => undefined)]
  const there = cuda ? fieldOf(`dynamic-building-${tileName(tile)}`, []).candidates : []
  const entries = await compete(
    [
      ...there.map((c): Contestant => ({ ...alone(cuda!, c, masked), name: `CUDA ${c.text}`, side: 'peer' })),
      ...field.candidates.map((c) => alone(on, c, masked)),
    ],
    field.standard,
    s,
  )
  await s.done({ ...base, entries, standard: field.standard })
}

function caseOf(
  s: Session,
  suite: string,
  tile: Tile,
  held: number,
  { shape: [m, , k], expected, count }: Masked,
): Omit<Case, 'entries' | 'standard'> {
  return {
    suite,
    data: tileText(tile),
    at: percent(held),
    checked: expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops: 0, bytes: 2 * m * k }, 'f16') : null,
    flops: count,
  }
}

/** Checked with a product of some columns, timed with none. */
function alone(on: OurDevice, candidate: Candidate, masked: Masked): Contestant {
  return {
    name: candidate.text,
    side: 'ours',
    async enter() {
      const checked = await bindMasked(on, candidate, masked, masked.B)
      const verdict = await checkProduct(checked, masked.expected).finally(() => checked.free())
      const run = await bindMasked(on, candidate, masked, new Uint16Array(0))
      return {
        check: async () => verdict,
        scout: () => run.scout(),
        measure: (us) => run.measure(us),
        free: () => run.free(),
      }
    },
  }
}
