/**
 * Readback of single numbers: launches store them in cells of device memory, and one download serves all concurrent
 * reads. Cells reside in pages; a page is zeroed and reused once all its cells have been read.
 */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import type { DeviceBuffer, HostArray } from '../../../../runtime/device.ts'
import { type Column, type Use, update } from '../kernels/kernel-builder.ts'

export const PAGE_CELLS = 2 ** 14
/** Microtask turns for which a read waits, so that concurrent reads share its download. */
const SETTLE_TURNS = 64

export interface Cells {
  readonly page: Use
  readonly first: number
  readonly count: number
}

interface Page {
  readonly use: Use
  /** Number of cells allocated since the page was last reset. */
  used: number
  /** Unread cells, with the owner of each. */
  readonly unread: Map<Cells, object | null>
  reading: Promise<HostArray> | null
}

interface Memory {
  column(length: number): Column
  clear(column: Column): void
  release(column: Column): void
  download(column: Column): Promise<HostArray>
}

export class Readback {
  readonly #memory: Memory
  /** By their column; cells are allocated from the last page. */
  readonly #pages = new Map<Use, Page>()
  #last: Page

  constructor(memory: Memory) {
    this.#memory = memory
    this.#last = this.#add()
  }

  /** Memory of all pages: launches that update different cells are independent. */
  get memory(): ReadonlySet<DeviceBuffer> {
    return new Set([...this.#pages.keys()].map((use) => use.column.memory))
  }

  /** Zeroed cells, reserved until they are read or `owner` is rolled back. */
  allocate(count: number, owner: object | null): Cells {
    invariant(count <= PAGE_CELLS, `${count} numbers at once`)
    let page = this.#last
    if (page.unread.size > 0 && page.used + count > PAGE_CELLS) page = this.#last = this.#add()
    if (page.unread.size === 0) {
      page.used = 0
      this.#memory.clear(page.use.column)
    }
    const cells = { page: page.use, first: page.used, count }
    page.used += count
    page.unread.set(cells, owner)
    return cells
  }

  /** The numbers in the cells, after all previous launches; may be read once. */
  async read(cells: Cells): Promise<number[]> {
    const page = this.#pages.get(cells.page)!
    invariant(page.unread.has(cells), 'cells are read once')
    page.reading ??= this.#download(page)
    try {
      const words = await page.reading
      return Array.from({ length: cells.count }, (_, k) => words[cells.first + k]!)
    } finally {
      this.#forget(page, cells)
    }
  }

  /** Releases the unread cells of a failed owner. */
  rollback(owner: object): void {
    for (const page of this.#pages.values())
      for (const [cells, allocator] of page.unread) if (allocator === owner) this.#forget(page, cells)
  }

  /** Waits until concurrent coroutines have issued their work. */
  async settle(): Promise<void> {
    for (let k = 0; k < SETTLE_TURNS; k++) await null
  }

  dispose(): void {
    for (const { use } of this.#pages.values()) this.#memory.release(use.column)
    this.#pages.clear()
  }

  #add(): Page {
    const use = update(this.#memory.column(PAGE_CELLS))
    const page: Page = { use, used: 0, unread: new Map(), reading: null }
    this.#pages.set(use, page)
    return page
  }

  async #download(page: Page): Promise<HostArray> {
    await this.settle()
    page.reading = null
    return this.#memory.download({ ...page.use.column, length: page.used })
  }

  #forget(page: Page, cells: Cells): void {
    page.unread.delete(cells)
    if (page.unread.size > 0 || page === this.#last) return
    // `delete` returns false if `dispose` removed all pages.
    if (this.#pages.delete(page.use)) this.#memory.release(page.use.column)
  }
}
