//! Upstreams of a few lines, for what no simulator says.

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::world::Setup;

/// A setup whose one provider is the listener.
pub fn setup(listener: &TcpListener) -> Setup {
    Setup::new().config(&format!(
        "[providers.openai]\nbase_url = \"http://{}/v1\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n",
        listener.local_addr().unwrap()
    ))
}

pub async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// The next socket on which a create has come.
pub async fn create(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (stream, _) = listener.accept().await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    let create = socket.next().await.unwrap().unwrap();
    assert!(create.is_text(), "{create:?}");
    socket
}

/// Answers every create on every socket with these frames, and then reads on.
pub async fn answer(listener: TcpListener, frames: Vec<Message>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let frames = frames.clone();
        tokio::spawn(async move {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                if message.is_text() {
                    for frame in &frames {
                        // The bridge may close on the first of them.
                        let _ = socket.send(frame.clone()).await;
                    }
                }
            }
        });
    }
}
