// A browser starts no worker for a page that it opened as a file: search then runs in a frame that nobody sees.
if (location.protocol === "file:") {
  // As from a worker, a message comes later, and is a copy.
  const send = (receiver, data) =>
    setTimeout(() => receiver().onmessage?.(new MessageEvent("message", { data: structuredClone(data) })));
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => send(() => this, data);
      const script = inside.document.createElement("script");
      this.ready = new Promise((loaded) => (script.onload = loaded));
      script.src = new URL(url, location);
      inside.document.head.appendChild(script);
    }
    postMessage(data) {
      this.ready.then(() => send(() => this.frame.contentWindow ?? {}, data));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
