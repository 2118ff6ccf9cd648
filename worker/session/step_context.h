// What one call into a worker's session is about: when it is made, what it wants of the driver, and
// where what it asks of the servers is kept until it is answered. It is handed down from the call
// to whoever takes part in it, so that nobody keeps a time or a list of actions between two calls.
#pragma once

#include <utility>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "worker/session/actions.h"
#include "worker/session/open_requests.h"

namespace kumo {

struct WorkerStepContext {
  TimeUs now = 0;
  OpenRequests* requests = nullptr;  // the session's
  WorkerActions actions;             // in the order in which they are to be carried out

  void Do(WorkerAction action) { actions.push_back(std::move(action)); }
  // Sends something once.
  void Send(int server, Message message) { Do(SendToServerAction{server, std::move(message)}); }
  // A request, which is sent as soon as the server may have one more, and then repeated until it is
  // answered.
  void Ask(int server, wire::Header header, Payload payload = {}) {
    requests->Add(server, {std::move(header), std::move(payload)});
  }
  // What the turn has left to say: the requests whose time has come.
  void SendRequests() {
    for (const OpenRequest* request : requests->Send(now)) {
      Send(request->server, request->message);
    }
  }
};

}  // namespace kumo
