/**
 * Finding the tiles of a dense f16 matrix, 4096², that hold anything, alone: our kernels' launches with products of no
 * columns, against PyTorch, which waits for how many there are.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { entryOf, type PythonResult, pythonPeers } from '../../peers/python.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct } from '../contestants.ts'
import type { OurDevice } from '../ours.ts'
import type { Session } from '../session.ts'
import { bindMasked, type Masked, make, TILES, type Tile } from './dynamic.ts'

const SIZE = 4096
/** Columns of the product that lists are checked by. */
const CHECKED = 256
const HELD = [0.01, 0.1]

export async function dynamicBuilding(s: Session): Promise<void> {
  const cases = [...TILES, [1, 1] as const].flatMap((tile) =>
    HELD.map((held) => ({ tile, held, masked: make([SIZE, CHECKED, SIZE], tile, held) })),
  )
  const python = await peers(s, cases)
  for (const { tile, held, masked } of cases) {
    if (s.late()) return
    await building(s, tile, held, masked, python)
  }
}

interface PatternCase {
  readonly tile: Tile
  readonly held: number
  readonly masked: Masked
}

const idOf = (tile: Tile, held: number): string => `${tile.join('x')} ${held}`

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
  const suite = `dynamic-building-${tile.join('x')}`
  const name = `tiles of ${tile.join(' × ')}`
  const at = `${100 * held} %`
  if (s.has(suite, name, at)) return
  const field = fieldOf(suite, s.options.schedules)
  const device = await s.cuda()
  const entries = await compete(
    field.candidates.map((c) => alone(device, c, masked)),
    field.standard,
    s,
  )
  const [m, , k] = masked.shape
  await s.done({
    suite,
    data: name,
    at,
    entries: [...entries, ...python.filter((r) => r.id === idOf(tile, held)).map(entryOf)],
    checked: masked.expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops: 0, bytes: 2 * m * k }, 'f16') : null,
    flops: masked.count,
    standard: field.standard,
  })
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
