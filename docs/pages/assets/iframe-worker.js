/* Search without a server. Browsers start no web worker from a page that was opened from disk (file://), so there the
 * search worker runs in a hidden frame instead. Everywhere else this file does nothing. */
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    #frame = document.createElement("iframe")
    #loaded

    constructor(url) {
      super()
      this.#frame.hidden = true
      document.body.append(this.#frame)
      const scope = this.#frame.contentWindow
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      scope.importScripts = (...urls) => Promise.all(urls.map((each) => this.#load(each)))
      this.#loaded = this.#load(url)
    }

    #load(url) {
      const page = this.#frame.contentDocument
      const script = page.createElement("script")
      script.src = new URL(url, location.href)
      return new Promise((resolve, reject) => {
        script.onload = resolve
        script.onerror = reject
        page.body.append(script)
      })
    }

    async postMessage(data) {
      await this.#loaded
      const scope = this.#frame.contentWindow
      scope.dispatchEvent(new scope.MessageEvent("message", { data }))
    }

    terminate() {
      this.#frame.remove()
    }
  }

  window.IFrameWorker = FrameWorker // the name by which the theme's worker knows that it runs in a frame
  window.Worker = FrameWorker
}
